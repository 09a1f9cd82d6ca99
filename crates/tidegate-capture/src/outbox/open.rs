//! Opens streams.

use sha2::{Digest as _, Sha256};
use tidegate_changelog::{Lineage, LogError, LogIdentity, LogResult, LogStart};
use tidegate_sql::DatabaseName;

use super::reader::OutboxTailer;
use super::session::ReaderSession;
use super::stream::{PollIntervals, Stream};
use super::{Shared, position, readers, schema, unreadable};
use crate::capture_session::CaptureSession;

/// Opens a stream; see [`tidegate_changelog::ChangeLog::open`].
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
    // While this session is open, its `application_name` shows other nodes that the outbox is read.
    let name = readers::name(shared.settings.node);
    reader.rows(readers::MARK, &[&name]).await?;
    let (now, renewed) = reader.advance().await?;
    let rows = reader.rows(STATE, &[]).await?;
    let row = rows.first().ok_or_else(|| unreadable("the state"))?;
    let (log, earliest) = (row.get::<_, &str>(0), position(row.get(1)));
    let lineage = Lineage::new(identity(log));
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
    let (busy, idle) = shared.settings.poll_intervals;
    let tailer = OutboxTailer::new(reader, start, renewed);
    Ok(Stream::new(
        tailer,
        lineage,
        confirmed,
        PollIntervals(busy, idle),
    ))
}

/// The identity of the log: a hash of its UUID. After the promotion of a standby, and in a copy of
/// the database, the log gets another UUID ([`schema::ensure`]). After a promotion this is
/// necessary: the standby may lack the last transactions, and their positions are then assigned to
/// other transactions.
fn identity(log: &str) -> LogIdentity {
    let digest: [u8; 32] = Sha256::digest(log).into();
    let [a, b, c, d, ..] = digest;
    LogIdentity(u32::from_be_bytes([a, b, c, d]))
}

const STATE: &str = "SELECT log::text, earliest FROM tidegate_outbox.state";
