//! What a statement may leave in a session.

use tidegate_sql::RoleUse;
use tidegate_sql::statement::{BoundStatement, Kind, Purity};

/// What statements may have left in the session since the last reset. Each variant includes those
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SideEffects {
    /// Nothing has run.
    None,
    /// Pure reads. Another session of the same user still needs a reset.
    Reads,
    /// Settings, temporary tables, cursors, locks, channels, sequence values.
    Session,
    /// These, and prepared statements.
    Statements,
    /// These, and the seed of `random()`.
    Everything,
    /// Something that no reset removes. The connection has to be closed.
    Permanent,
}

impl SideEffects {
    /// What a statement may leave, given who uses the connection next.
    ///
    /// A call can run any code, and so can an `impure` statement, such as a write to a table with
    /// triggers.
    pub(crate) fn of(statement: &BoundStatement, role_use: RoleUse, impure: bool) -> Self {
        let harmless = !impure && leaves_nothing(statement, role_use);
        match role_use {
            RoleUse::Anonymous if names_settings(statement) => Self::Permanent,
            RoleUse::Anonymous if harmless => Self::Statements,
            RoleUse::Anonymous => Self::Everything,
            RoleUse::User(_) | RoleUse::Trusted { .. } if harmless => Self::None,
            RoleUse::User(_) | RoleUse::Trusted { .. } => Self::Session,
        }
    }

    /// Whether the session must be reset before its next use.
    pub(crate) fn is_reset_due(self) -> bool {
        self > Self::Reads
    }
}

/// Whether the statement's text leaves nothing that the next statement on the connection could
/// observe. On a connection without text of callers, a plain write may leave the last value of a
/// sequence.
pub(crate) fn leaves_nothing(bound: &BoundStatement, role_use: RoleUse) -> bool {
    let statement = &bound.statement;
    let is_plain_write = statement.kind() == Kind::Write
        && statement.is_plain()
        && bound.hints.iter().all(Option::is_none);
    is_stateless(bound) || (role_use.is_trusted() && is_plain_write)
}

/// Whether the statement's text can leave nothing at all.
pub(crate) fn is_stateless(statement: &BoundStatement) -> bool {
    statement.statement.kind() == Kind::Read && statement.purity() == Purity::Stateless
}

/// Whether a statement of anonymous callers may create a setting (PostgreSQL, "Customized
/// Options"). No reset removes a setting: its value is NULL before and an empty string afterwards.
/// The check looks at the text only, which may run other text through the functions listed here.
/// Anonymous callers cannot create functions.
fn names_settings(statement: &BoundStatement) -> bool {
    const BY: [&str; 5] = ["set_config", "_to_xml", "ts_stat", "ts_rewrite", "u&\""];
    if is_stateless(statement) {
        return false;
    }
    let text = statement.statement.text().to_ascii_lowercase();
    let is_plain = matches!(statement.statement.kind(), Kind::Read | Kind::Write);
    !is_plain || BY.iter().any(|name| text.contains(name))
}
