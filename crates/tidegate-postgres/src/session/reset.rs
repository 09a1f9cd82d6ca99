//! What statements leave in a session, and how it is removed.

use tidegate_sql::Sharing;
use tidegate_sql::statement::{BoundStatement, Kind, Trust};

use crate::connection::Connection;

/// What a statement may have left in the session. The greater includes the lesser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Residue {
    /// Nothing.
    None,
    /// Settings, temporary tables, cursors, locks, channels, sequence values.
    Session,
    /// These, and prepared statements.
    Everything,
}

/// What `DISCARD ALL` does, except that prepared statements stay (PostgreSQL, "DISCARD"). The
/// last row tells of statements that were prepared by SQL, which are not ours.
const SOFT: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; CLOSE ALL; RESET ALL; \
    UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES; SELECT pg_catalog.pg_advisory_unlock_all(); \
    SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql LIMIT 1";

/// The rows that the soft reset returns when nothing else is to be done.
pub(crate) const SOFT_ROWS: u32 = 1;

impl Residue {
    /// What a statement may leave, by who uses the session next.
    ///
    /// A write may run triggers; a call runs anything.
    pub(crate) fn of(statement: &BoundStatement, sharing: Sharing) -> Self {
        match (sharing, statement.statement.kind(), statement.trust()) {
            (Sharing::Strangers, _, _) => Self::Everything,
            (Sharing::One(_), Kind::Read, Trust::Stateless) => Self::None,
            (Sharing::One(_), _, _) => Self::Session,
        }
    }
}

impl Connection {
    /// Queues the reset that removes the residue.
    pub(crate) fn push_reset(&mut self, residue: Residue) {
        if residue == Residue::Everything {
            self.statements.clear();
            self.simple("DISCARD ALL");
        } else {
            self.simple(SOFT);
        }
        // A statement timeout that the caller has set and that runs out at the very end of the
        // reset hits the message behind it, which must not be the next caller's.
        self.sync();
        self.begin_reset(residue);
    }
}
