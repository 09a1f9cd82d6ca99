//! What statements leave in a session, and how it is removed.

use tidegate_sql::RoleUse;
use tidegate_sql::statement::{BoundStatement, Kind, Purity};

use crate::connection::Connection;

/// What statements may have left in the session since the last reset. The greater includes the
/// lesser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Residue {
    /// Nothing has run.
    None,
    /// Harmless reads, after which another session of the same user needs a reset all the same.
    Reads,
    /// Settings, temporary tables, cursors, locks, channels, sequence values.
    Session,
    /// These, and prepared statements.
    Statements,
    /// These, and the seed of `random()`.
    Everything,
    /// What no reset removes: the connection is closed instead of being lent again.
    Permanent,
}

/// What `DISCARD ALL` does, except for locks and prepared statements (PostgreSQL, "DISCARD").
const SOFT: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; CLOSE ALL; RESET ALL; \
    UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES";

/// Seeds `random()` with what nobody knows, from -1 up to 1.
macro_rules! seed {
    () => {
        "pg_catalog.setseed(pg_catalog.uuid_hash_extended(pg_catalog.gen_random_uuid(), 0)\
         ::pg_catalog.float8 OPERATOR(pg_catalog./) 9223372036854775808::pg_catalog.float8)\
         ::pg_catalog.text"
    };
}

/// Releases locks, seeds `random()`, and lists the statements that were prepared by SQL, which are
/// not ours. It is prepared once for a connection: planning costs more than all the rest.
const CHECK: &str = concat!(
    "SELECT pg_catalog.pg_advisory_unlock_all()::pg_catalog.text UNION ALL SELECT ",
    seed!(),
    " UNION ALL SELECT p.name FROM pg_catalog.pg_prepared_statement() p WHERE p.from_sql"
);

/// The rows that the check returns when nothing else is to be done.
pub(crate) const CHECK_ROWS: u32 = 2;

/// Makes the numbers of `random()` unforeseeable again, which `DISCARD ALL` does not.
const SEED: &str = concat!("SELECT ", seed!());

impl Residue {
    /// What a statement may leave, by who uses the session next.
    ///
    /// A call runs anything, and so may a suspect, such as a write of a table with triggers.
    pub(crate) fn of(statement: &BoundStatement, role_use: RoleUse, suspect: bool) -> Self {
        let harmless = !suspect && is_harmless(statement, role_use);
        match role_use {
            RoleUse::Anonymous if names_settings(statement) => Self::Permanent,
            RoleUse::Anonymous if harmless => Self::Statements,
            RoleUse::Anonymous => Self::Everything,
            RoleUse::User(_) | RoleUse::Trusted { .. } if harmless => Self::None,
            RoleUse::User(_) | RoleUse::Trusted { .. } => Self::Session,
        }
    }

    /// Whether the session must be reset before it is lent again.
    pub(crate) fn is_reset_due(self) -> bool {
        self > Self::Reads
    }
}

/// Whether nothing in the statement's text can leave anything that the next statement of those who
/// use the session could find. On a connection that carries no texts of callers a plain write may
/// leave the last value of a sequence.
pub(crate) fn is_harmless(bound: &BoundStatement, role_use: RoleUse) -> bool {
    let statement = &bound.statement;
    let is_plain_write = statement.kind() == Kind::Write
        && statement.is_plain()
        && bound.hints.iter().all(Option::is_none);
    is_stateless(bound) || (role_use.is_trusted() && is_plain_write)
}

/// Whether nothing in the statement's text can leave anything.
pub(crate) fn is_stateless(statement: &BoundStatement) -> bool {
    statement.statement.kind() == Kind::Read && statement.purity() == Purity::Stateless
}

/// Whether a statement of anonymous callers may give a name to a setting that had none. That
/// outlives every reset: a setting once named is empty afterwards, where it was NULL before
/// (PostgreSQL, "Customized Options"). By its text, which may run another text by functions that
/// take one; anonymous callers can make no functions.
fn names_settings(statement: &BoundStatement) -> bool {
    const BY: [&str; 5] = ["set_config", "_to_xml", "ts_stat", "ts_rewrite", "u&\""];
    if is_stateless(statement) {
        return false;
    }
    let text = statement.statement.text().to_ascii_lowercase();
    let is_plain = matches!(statement.statement.kind(), Kind::Read | Kind::Write);
    !is_plain || BY.iter().any(|name| text.contains(name))
}

impl Connection {
    /// Queues the reset that removes what statements have left.
    pub(crate) fn push_reset(&mut self) {
        let residue = self.session.residue().max(Residue::Session);
        let seeds = residue >= Residue::Everything;
        if residue >= Residue::Statements {
            self.session.statements.clear();
            self.simple("DISCARD ALL");
        } else {
            self.simple(SOFT);
            self.push_check();
        }
        if seeds {
            self.simple(SEED);
        }
        // A statement timeout that the caller has set and that runs out at the very end of the
        // reset hits the message behind it, which must not be the next caller's.
        self.sync();
        self.session.begin_reset(residue, 2 + u32::from(seeds));
    }

    fn push_check(&mut self) {
        self.begin_pipeline();
        if self.push_own(CHECK).is_err() {
            self.give_up();
        }
    }
}
