//! Resets a session: removes the side effects that statements may have left in it.

use super::Connection;
use crate::statement::SideEffects;

/// Does what `DISCARD ALL` does, except for locks and prepared statements (PostgreSQL, "DISCARD").
const SOFT: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; CLOSE ALL; RESET ALL; \
    UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES";

/// An SQL expression that seeds `random()` with an unpredictable number from -1 up to 1.
macro_rules! seed {
    () => {
        "pg_catalog.setseed(pg_catalog.uuid_hash_extended(pg_catalog.gen_random_uuid(), 0)\
         ::pg_catalog.float8 OPERATOR(pg_catalog./) 9223372036854775808::pg_catalog.float8)\
         ::pg_catalog.text"
    };
}

/// Releases locks, seeds `random()`, and lists the statements that callers prepared by SQL. `CHECK`
/// itself is prepared once for each connection, because planning it costs more than the rest of the
/// reset. On connections of members it is parsed again for each reset, because code that a
/// statement calls could replace a prepared statement.
const CHECK: &str = concat!(
    "SELECT pg_catalog.pg_advisory_unlock_all()::pg_catalog.text UNION ALL SELECT ",
    seed!(),
    " UNION ALL SELECT p.name FROM pg_catalog.pg_prepared_statement() p WHERE p.from_sql"
);

/// The number of rows that [`CHECK`] returns if callers prepared no statement.
pub(crate) const CHECK_ROWS: u32 = 2;

/// Makes `random()` unpredictable again. `DISCARD ALL` leaves the seed unchanged.
const SEED: &str = concat!("SELECT ", seed!());

impl Connection {
    /// Queues the reset that removes the recorded side effects.
    pub(crate) fn push_reset(&mut self) {
        let side_effects = self.session.side_effects().max(SideEffects::Session);
        let discards = side_effects >= SideEffects::Statements;
        let checks_first = discards && self.session.is_sealing();
        let seeds = side_effects >= SideEffects::Everything && !checks_first;
        if checks_first {
            // `DISCARD ALL` drops the statements that the check looks for. So in a session of
            // members the check runs before `DISCARD ALL`.
            self.push_check();
            self.sync();
        }
        if discards {
            self.session.statements.clear();
            self.push_simple("DISCARD ALL");
        } else {
            self.push_simple(SOFT);
            self.push_check();
        }
        if seeds {
            self.push_simple(SEED);
        }
        // A statement timeout that the caller set may fire at the very end of the reset. Because of
        // this Sync, the timeout interrupts the reset and not a statement of the next caller.
        self.sync();
        let responses = 2 + u32::from(seeds) + u32::from(checks_first);
        self.session.begin_reset(side_effects, responses);
    }

    fn push_check(&mut self) {
        self.begin_pipeline();
        // On a connection of members, code that a statement called may have replaced a prepared
        // check together with the statement that seals claims. On such a connection the check is
        // therefore parsed again for each reset.
        let pushed = if self.session.is_sealing() {
            self.push_command(CHECK)
        } else {
            self.push_internal(CHECK)
        };
        if pushed.is_err() {
            self.mark_closed();
        }
    }
}
