//! The side effects that a statement may have on its session, and its effect on name resolution.

use tidegate_sql::statement::{BoundStatement, Kind, Purity};
use tidegate_sql::{RoleUse, SharedBy};

/// The side effects that statements may have left in the session since the most recent reset. Each
/// variant includes the variants before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SideEffects {
    /// Nothing has run.
    None,
    /// Only statements without side effects on the session have run. The session needs a reset only
    /// before another OAuth session of the user uses it.
    Reads,
    /// Settings, temporary tables, cursors, locks, `LISTEN` channels or sequence values may be left
    /// in the session.
    Session,
    /// Prepared statements may be left, too.
    Statements,
    /// The seed of `random()` may be left, too.
    Everything,
    /// Something may be left that no reset removes. The connection has to be closed.
    Permanent,
}

impl SideEffects {
    /// The side effects that a statement may have. `role_use` says which callers share the
    /// connection's role. `impure` says whether the statement mentions an untrusted name.
    ///
    /// A statement that calls a user-defined function can run any code, and so can an `impure`
    /// statement, such as a write to a table with triggers.
    pub(crate) fn of(statement: &BoundStatement, role_use: &RoleUse, impure: bool) -> Self {
        let is_pure = !impure && leaves_nothing(statement, role_use);
        match (role_use.is_reset_fully(), is_pure) {
            (true, _) if may_create_settings(statement) => Self::Permanent,
            (true, true) => Self::Statements,
            (true, false) => Self::Everything,
            (false, true) => Self::None,
            (false, false) => Self::Session,
        }
    }

    /// Whether the session must be reset before its next use.
    pub(crate) fn is_reset_due(self) -> bool {
        self > Self::Reads
    }
}

/// Whether names resolve as at the start of the session, as far as the service knows. They do if
/// the `search_path` and the role are the same and there are no temporary tables. Each variant is
/// further from the initial state than the variant before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameResolution {
    /// Names resolve as at the start of the session.
    #[default]
    Initial,
    /// Names resolve as at the start of the session, unless a trigger or a view changed name
    /// resolution. Cached descriptions are used, but new descriptions are cached only after a
    /// check.
    ProbablyInitial,
    /// A statement, or code that it ran, may have changed name resolution.
    Unknown,
    /// A query has shown that name resolution has changed, or the query failed.
    Changed,
}

impl NameResolution {
    /// The state after a statement. `self` is the state before it.
    pub(crate) fn after(self, bound: &BoundStatement, impure: bool) -> Self {
        match Self::after_initial(bound, impure) {
            // The statement may also have restored the initial name resolution.
            Self::Unknown => Self::Unknown,
            after => self.max(after),
        }
    }

    /// The state after a statement, if the state before it was `Initial`.
    fn after_initial(bound: &BoundStatement, impure: bool) -> Self {
        let statement = &bound.statement;
        match statement.kind() {
            Kind::Read | Kind::Write if !statement.is_plain() => Self::Unknown,
            // `is_stateless` includes the type hints: a hint can name a domain, whose check may
            // call user-defined code.
            Kind::Read if !impure && is_stateless(bound) => Self::Initial,
            Kind::Read | Kind::Write => Self::ProbablyInitial,
            Kind::Procedural | Kind::Other => Self::Unknown,
        }
    }
}

/// Whether the statement, according to its text, has no side effect that the next statement on the
/// connection could observe.
///
/// A plain write may change the value that `lastval()` returns. Only statements that callers wrote
/// can observe this value, and shared connections run no such statements. Therefore the result is
/// `true` for a plain write on a shared connection, unless the connection serves members. For
/// members the result is `false`, so that a reset follows. The reset checks whether the prepared
/// statement that seals claims was replaced.
pub(crate) fn leaves_nothing(bound: &BoundStatement, role_use: &RoleUse) -> bool {
    let statement = &bound.statement;
    let is_plain_write = statement.kind() == Kind::Write
        && statement.is_plain()
        && bound.hints.iter().all(Option::is_none);
    let allows_writes = match role_use {
        RoleUse::Trusted(by) => *by != SharedBy::Members,
        RoleUse::Anonymous | RoleUse::User(_) | RoleUse::Member(_) => false,
    };
    is_stateless(bound) || (allows_writes && is_plain_write)
}

/// Whether the statement's text has no side effect on the session at all.
pub(crate) fn is_stateless(statement: &BoundStatement) -> bool {
    statement.statement.kind() == Kind::Read && statement.purity() == Purity::Stateless
}

/// Whether a statement may create a setting (PostgreSQL, "Customized Options"). Used for roles that
/// several callers share, because a reset does not remove such a setting: after the reset
/// `current_setting` returns an empty string for it instead of NULL.
///
/// The result is `true` for every statement that is not a read or a write, such as `SET`. A read or
/// a write can create a setting only through a function in `BY`, or through a name with Unicode
/// escapes (`u&"`), which may be the name of such a function. Searching the text is enough, because
/// no caller can hide such a name in a function: anonymous callers cannot create functions, and
/// members run no text of their own.
fn may_create_settings(statement: &BoundStatement) -> bool {
    const BY: [&str; 5] = ["set_config", "_to_xml", "ts_stat", "ts_rewrite", "u&\""];
    if is_stateless(statement) {
        return false;
    }
    let text = statement.statement.text().to_ascii_lowercase();
    let is_plain = matches!(statement.statement.kind(), Kind::Read | Kind::Write);
    !is_plain || BY.iter().any(|name| text.contains(name))
}
