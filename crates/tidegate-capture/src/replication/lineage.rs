//! The identity of a log, and the logs that it continues. A promotion starts a new timeline of the
//! WAL (PostgreSQL, "Timelines").

use sha2::{Digest as _, Sha256};
use tidegate_changelog::{Lineage, LogError, LogIdentity, LogPosition, LogResult};
use tracing::debug;

use super::session::{COMMAND_TIMEOUT, ReplicationSession, TextRow};
use super::unreadable;

/// The lineage of a database's log. `system` is the row that `IDENTIFY_SYSTEM` returned, and
/// `database` is the OID of the database.
pub(super) async fn of(
    session: &mut ReplicationSession,
    system: &TextRow,
    database: &str,
) -> LogResult<Lineage> {
    let [Some(cluster), Some(timeline), ..] = system.as_slice() else {
        return Err(unreadable("the answer to IDENTIFY_SYSTEM"));
    };
    let timeline: u32 = timeline
        .parse()
        .map_err(|_| unreadable("the timeline of the server"))?;
    let log = |timeline| identity(cluster, timeline, database);
    let ancestors = switches(session, timeline).await?.into_iter();
    Ok(Lineage {
        log: log(timeline),
        ancestors: ancestors
            .map(|(timeline, end)| (log(timeline), end))
            .collect(),
    })
}

/// The identity of a log: a hash of the cluster, its timeline and the database.
fn identity(cluster: &str, timeline: u32, database: &str) -> LogIdentity {
    let mut hash = Sha256::new();
    for part in [cluster, &timeline.to_string()] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(database.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, ..] = digest;
    LogIdentity(u32::from_be_bytes([a, b, c, d]))
}

/// The earlier timelines, each with the position at which the next one begins (PostgreSQL,
/// "Streaming Replication Protocol", `TIMELINE_HISTORY`).
async fn switches(
    session: &mut ReplicationSession,
    timeline: u32,
) -> LogResult<Vec<(u32, LogPosition)>> {
    // The first timeline has no history file.
    if timeline == 1 {
        return Ok(Vec::new());
    }
    let command = format!("TIMELINE_HISTORY {timeline}");
    match session.run(&command, COMMAND_TIMEOUT).await {
        Ok(rows) => {
            let content = rows.first().and_then(|row| row.get(1)?.as_deref());
            Ok(content.map(parse).unwrap_or_default())
        }
        Err(error @ (LogError::Unavailable(_) | LogError::TimedOut { .. })) => Err(error),
        // The file is missing, for example in a cluster that was restored without its archive. In
        // this case the log continues no other log.
        Err(error) => {
            debug!(%error, "the server has no timeline history");
            Ok(Vec::new())
        }
    }
}

/// Reads a history file. Each line has a timeline, the position at which the next timeline begins,
/// and the reason of the switch.
fn parse(content: &str) -> Vec<(u32, LogPosition)> {
    let lines = content.lines();
    let switch = |line: &str| {
        let mut fields = line.split_whitespace();
        let timeline = fields.next()?.parse().ok()?;
        Some((timeline, fields.next()?.parse().ok()?))
    };
    lines.filter_map(switch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_file_names_timelines_and_switches() {
        let content = "1\t0/5000110\tno recovery target specified\n\n# a comment\n\
                       2\t16/B374D848\tbefore 2000-01-01 00:00:00+00\n";
        let expected = [
            (1, LogPosition(0x500_0110)),
            (2, LogPosition(0x16_B374_D848)),
        ];
        assert_eq!(parse(content), expected);
        assert_eq!(parse(""), []);
    }

    #[test]
    fn each_part_of_an_identity_counts() {
        let log = identity("7", 1, "16384");
        assert_eq!(log, identity("7", 1, "16384"));
        for other in [
            identity("8", 1, "16384"),
            identity("7", 2, "16384"),
            identity("7", 1, "16385"),
        ] {
            assert_ne!(log, other);
        }
    }
}
