//! Checks the server settings that are needed to read changes from WAL.

use super::super::Result;
use super::super::session::Session;
use super::Finding;
use super::server_settings::{Effect, SettingChange};

/// PostgreSQL's default for `max_replication_slots` and `max_wal_senders`.
const DEFAULT: u32 = 10;

/// Selects the limit on replication slots, the number of slots that do not belong to Tidegate, the
/// same two numbers for WAL senders, and the number of databases with a retention slot.
const USAGE: &str = "\
    WITH slots AS (SELECT s.*, s.slot_name ~ '^tidegate_[0-9]+(_[0-9]+)?$' AS own \
                   FROM pg_catalog.pg_replication_slots s) \
    SELECT pg_catalog.current_setting('max_replication_slots')::int4, \
           (SELECT pg_catalog.count(*) FROM slots WHERE NOT own)::int4, \
           pg_catalog.current_setting('max_wal_senders')::int4, \
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_replication r \
            WHERE NOT EXISTS (SELECT FROM slots s WHERE s.own AND s.active_pid = r.pid))::int4, \
           (SELECT pg_catalog.count(*) FROM slots \
            WHERE own AND NOT temporary AND slot_name ~ '^tidegate_[0-9]+$')::int4";

/// Checks that `wal_level` is `logical`, because otherwise changes cannot be decoded.
pub(super) async fn level(session: &Session) -> Result<Finding> {
    let level = "SELECT pg_catalog.current_setting('wal_level')";
    let row = session.client.query_one(level, &[]).await?;
    let change = SettingChange::read(session).await?;
    Ok(Finding::recommend(
        row.get::<_, &str>(0) == "logical",
        "wal_level is logical",
        "wal_level is not logical: reading changes from the log needs it (restart PostgreSQL after this)",
        change.command("wal_level", "logical", Effect::Restart),
    ))
}

/// Compares the limits on slots and WAL senders with the numbers that the nodes need. These numbers
/// depend on the number of databases with a retention slot. If there is no such database, one is
/// assumed.
pub(super) async fn slots_and_senders(
    session: &Session,
    nodes: u32,
    has_bus: bool,
) -> Result<[Finding; 2]> {
    let row = session.client.query_one(USAGE, &[]).await?;
    let number = |column| row.get::<_, i32>(column).unsigned_abs();
    let change = SettingChange::read(session).await?;
    let need = Need {
        nodes: nodes.max(1),
        databases: number(4).max(1),
        has_bus,
    };
    let slots = ("max_replication_slots", number(0), number(1));
    let senders = ("max_wal_senders", number(2), number(3));
    Ok([
        need.check(slots, "replication slots", need.slots(), &change),
        need.check(senders, "WAL senders", need.senders(), &change),
    ])
}

/// The numbers on which the need for slots and WAL senders depends.
struct Need {
    nodes: u32,
    databases: u32,
    has_bus: bool,
}

impl Need {
    /// Each node reads a copy of each retention slot. With a bus, it does so only while the bus does
    /// not work, but then a node without a slot has no events.
    fn slots(&self) -> u32 {
        self.databases.saturating_add(self.senders())
    }

    fn senders(&self) -> u32 {
        self.nodes.saturating_mul(self.databases)
    }

    fn reason(&self, needed: u32) -> String {
        let (nodes, databases) = (self.nodes, self.databases);
        if self.has_bus {
            // With a bus, one node reads the retention slot of a database.
            format!(
                "{nodes} node(s) with a bus need {databases} for {databases} database(s) with \
                 subscribers, and {needed} while the bus does not work"
            )
        } else {
            format!(
                "{nodes} node(s) without a bus need {needed} for {databases} database(s) with \
                 subscribers"
            )
        }
    }

    /// Compares one of the limits with the number that is `needed`. `others` is the number of slots
    /// or WAL senders that do not belong to Tidegate, and `what` names them in the text.
    fn check(
        &self,
        (name, limit, others): (&str, u32, u32),
        what: &str,
        needed: u32,
        change: &SettingChange,
    ) -> Finding {
        let left = limit.saturating_sub(others);
        let reason = self.reason(needed);
        let enough = others.saturating_add(self.slots());
        Finding::recommend(
            left >= needed,
            &format!("there are {left} {what} for change events; {reason}"),
            &format!(
                "{name} leaves {left} {what} for change events; {reason} (restart PostgreSQL \
                 after this)"
            ),
            change.command(name, &enough.max(DEFAULT).to_string(), Effect::Restart),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_needs_one_reader_for_each_database_while_it_works() {
        let need = |has_bus| Need {
            nodes: 3,
            databases: 4,
            has_bus,
        };
        assert_eq!((need(true).slots(), need(true).senders()), (16, 12));
        let reason = "3 node(s) with a bus need 4 for 4 database(s) with subscribers, and 12 while \
                      the bus does not work";
        assert_eq!(need(true).reason(12), reason);
        let reason = "3 node(s) without a bus need 12 for 4 database(s) with subscribers";
        assert_eq!(need(false).reason(12), reason);
    }
}
