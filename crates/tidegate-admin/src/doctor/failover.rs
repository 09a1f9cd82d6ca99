//! Checks whether change events continue after the promotion of a standby.

use std::fmt::Write as _;

use tidegate_wire::Config;

use super::super::Result;
use super::super::session::Session;
use super::{Finding, Severity};

/// The `server_version_num` of the first PostgreSQL that can copy slots to standbys ("Logical
/// Replication Failover").
const SYNCHRONIZES_SLOTS: u32 = 170_000;

/// Selects whether the server has standbys, and the names in `synchronized_standby_slots` for which
/// no slot exists.
const STANDBYS: &str = "\
    SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_replication r \
                   WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s \
                                     WHERE s.active_pid = r.pid AND s.slot_type = 'logical')), \
           (SELECT pg_catalog.string_agg(pg_catalog.btrim(n.name), ', ') \
            FROM pg_catalog.regexp_split_to_table( \
                pg_catalog.current_setting('synchronized_standby_slots', true), ',') AS n (name) \
            WHERE pg_catalog.btrim(n.name) <> '' \
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots s \
                            WHERE s.slot_name = pg_catalog.btrim(n.name)))";

/// Selects the retention slots and their databases. A slot without a database is left out. Either
/// its database is being dropped, or it is a physical slot whose name happens to match the pattern.
const SLOTS: &str = "\
    SELECT slot_name::text, database::text FROM pg_catalog.pg_replication_slots \
    WHERE slot_name ~ '^tidegate_[0-9]+$' AND NOT temporary AND database IS NOT NULL \
    ORDER BY slot_name";

/// If the server has standbys, or the configuration has several hosts, reports what standbys need
/// to keep the retention slots. Also reports names in `synchronized_standby_slots` that are no
/// slots.
pub(super) async fn slots(session: &Session, config: &Config) -> Result<Vec<Finding>> {
    let row = session.client.query_one(STANDBYS, &[]).await?;
    let (has_standbys, unknown): (bool, Option<String>) = (row.get(0), row.get(1));
    let mut findings = Vec::new();
    if let Some(unknown) = unknown {
        findings.push(Finding::advice(
            format!(
                "synchronized_standby_slots names slots that do not exist ({unknown}): change \
                 events wait for them without end"
            ),
            None,
        ));
    }
    if !has_standbys && config.targets.len() == 1 {
        return Ok(findings);
    }
    let rows = session.client.query(SLOTS, &[]).await?;
    let slots: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    findings.push(Finding {
        text: advice(session.version).to_owned(),
        severity: Severity::Note,
        sql: (!slots.is_empty()).then(|| patroni(session.version, &slots)),
    });
    Ok(findings)
}

fn advice(version: u32) -> &'static str {
    if version < SYNCHRONIZES_SLOTS {
        "after the promotion of a standby subscribers get `resync`, unless the standby has the slots \
         of subscribed databases; Patroni keeps permanent slots on all members (patronictl \
         edit-config):"
    } else {
        "after the promotion of a standby subscribers get `resync`, unless the standby copies slots: \
         it needs sync_replication_slots and hot_standby_feedback on, primary_slot_name, and dbname \
         in primary_conninfo; Patroni must leave the copies alone (patronictl edit-config):"
    }
}

/// The YAML to add to Patroni's dynamic configuration, so that standbys keep the slots.
fn patroni(version: u32, slots: &[(String, String)]) -> String {
    let mut yaml = String::new();
    if version < SYNCHRONIZES_SLOTS {
        yaml.push_str("slots:");
        for (name, database) in slots {
            let database = quoted(database);
            let _ = write!(
                yaml,
                "\n  {name}:\n    type: logical\n    database: {database}\n    plugin: pgoutput"
            );
        }
    } else {
        yaml.push_str("ignore_slots:");
        for (name, _) in slots {
            let _ = write!(yaml, "\n  - name: {name}\n    type: logical");
        }
    }
    yaml
}

/// A single-quoted scalar of YAML.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Vec<(String, String)> {
        vec![("tidegate_16385".to_owned(), "it's a shop".to_owned())]
    }

    #[test]
    fn before_17_slots_are_permanent_and_later_they_are_ignored() {
        assert_eq!(
            patroni(150_018, &slots()),
            "slots:\n  tidegate_16385:\n    type: logical\n    database: 'it''s a shop'\n    \
             plugin: pgoutput"
        );
        assert_eq!(
            patroni(170_002, &slots()),
            "ignore_slots:\n  - name: tidegate_16385\n    type: logical"
        );
    }
}
