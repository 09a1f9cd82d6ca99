//! Opens streams.

use sha2::{Digest as _, Sha256};
use tidegate_changelog::{Lineage, LogError, LogIdentity, LogResult, LogStart};
use tidegate_sql::DatabaseName;

use super::reader::OutboxTailer;
use super::session::ReaderSession;
use super::stream::{PollIntervals, Stream};
use super::{Shared, position, readers, schema, unreadable};
use crate::capture_session::CaptureSession;

/// Opens a stream.
pub(super) async fn open(
    shared: &Shared,
    database: &DatabaseName,
    start: LogStart,
) -> LogResult<Stream> {
    drop(schema::ensure(shared, database).await?);
    let session = CaptureSession::reader(&shared.logins, database).await?;
    schema::configure_session(&session).await?;
    let reader = ReaderSession {
        client: session.client,
    };
    // While this session is open, its name shows other nodes that the outbox is read.
    let name = readers::name(shared.settings.node);
    reader.rows(readers::MARK, &[&name]).await?;
    let (now, renewed) = reader.advance().await?;
    let rows = reader.rows(STATE, &[]).await?;
    let row = rows.first().ok_or_else(|| unreadable("the state"))?;
    let (log, earliest) = (row.get::<_, &str>(0), position(row.get(1)));
    let lineage = Lineage::new(identity(log, &timeline(&reader).await?));
    let start = match start {
        LogStart::At { log, position }
            if !lineage.contains(log, position) || position < earliest || position > now =>
        {
            return Err(LogError::Gone);
        }
        LogStart::At { position, .. } => position,
        LogStart::Earliest => earliest,
        LogStart::Now => now,
    };
    let confirmed = shared.register(database, start);
    let (busy, idle) = shared.settings.pace;
    let tailer = OutboxTailer::new(reader, start, renewed);
    Ok(Stream::new(
        tailer,
        lineage,
        confirmed,
        PollIntervals(busy, idle),
    ))
}

/// The timeline of the server's WAL; empty for the first one, or if the server refuses the query. The
/// promotion of a standby starts another timeline (PostgreSQL, "Timelines"). The positions of
/// transactions that the standby did not have are then used again.
async fn timeline(reader: &ReaderSession) -> LogResult<String> {
    match reader.rows(TIMELINE, &[]).await {
        // The caller opens the log again later, so that a slow query does not change the identity.
        Err(error @ (LogError::Unavailable(_) | LogError::TimedOut { .. })) => Err(error),
        Err(_) => Ok(String::new()),
        Ok(rows) => {
            let timeline: &str = rows.first().map_or("", |row| row.get(0));
            let timeline = timeline.trim_start_matches('0');
            Ok(if timeline == "1" { "" } else { timeline }.to_owned())
        }
    }
}

/// The identity of the log: a hash of its UUID and the timeline.
fn identity(log: &str, timeline: &str) -> LogIdentity {
    let digest: [u8; 32] = Sha256::digest([log, timeline].concat()).into();
    let [a, b, c, d, ..] = digest;
    LogIdentity(u32::from_be_bytes([a, b, c, d]))
}

/// The first part of the name of a WAL file is its timeline.
const TIMELINE: &str = "SELECT pg_catalog.left(pg_catalog.pg_walfile_name( \
    pg_catalog.pg_current_wal_insert_lsn()), 8)";

const STATE: &str = "SELECT log::text, earliest FROM tidegate_outbox.state";
