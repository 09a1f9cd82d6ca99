//! What statements leave in a session, and how it is removed.

use postgres_protocol::message::frontend;
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

/// What `DISCARD ALL` does, except for locks and prepared statements (PostgreSQL, "DISCARD").
const SOFT: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; CLOSE ALL; RESET ALL; \
    UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES";

/// Releases locks, and lists the statements that were prepared by SQL, which are not ours. It is
/// prepared once for a connection: planning costs more than all the rest.
const CHECK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()::pg_catalog.text \
    UNION ALL SELECT p.name FROM pg_catalog.pg_prepared_statement() p WHERE p.from_sql";

/// The rows that the check returns when nothing else is to be done.
pub(crate) const CHECK_ROWS: u32 = 1;

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
            self.push_check();
        }
        // A statement timeout that the caller has set and that runs out at the very end of the
        // reset hits the message behind it, which must not be the next caller's.
        self.sync();
        self.begin_reset(residue);
    }
    fn push_check(&mut self) {
        let (name, is_new) = self.statements.check();
        self.begin_pipeline();
        let out = &mut self.channel.outbound;
        let parsed = if is_new {
            frontend::parse(&name, CHECK, [], out)
        } else {
            Ok(())
        };
        let nothing = |(): (), _: &mut bytes::BytesMut| Ok(postgres_protocol::IsNull::Yes);
        let bound = frontend::bind("", &name, [], [], nothing, [], out);
        let executed = frontend::execute("", 0, out);
        if parsed.is_err() || bound.is_err() || executed.is_err() {
            self.give_up();
        }
    }
}
