//! Maintains the outbox: renews the lease of the triggers, and deletes changes before the retention
//! window.

use tidegate_changelog::{LogPosition, LogResult};
use tidegate_sql::DatabaseName;
use tracing::warn;

use super::{Shared, number, position, schema, unreadable};
use crate::capture_session::CaptureSession;

/// Moves the start of the retention window; see [`tidegate_changelog::ChangeLog::retain`]. Also
/// renews the lease of the triggers. Does not delete changes that a stream of this node has not
/// confirmed yet. Returns the end of the log; position 0 if the database has no outbox.
pub(super) async fn retain(
    shared: &Shared,
    database: &DatabaseName,
    keep: LogPosition,
) -> LogResult<LogPosition> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    if !schema::exists(&admin).await? {
        return Ok(LogPosition::default());
    }
    schema::configure_session(&admin).await?;
    schema::renew(shared, database, &admin).await?;
    if admin.rows(INSPECT, &[]).await?.iter().any(|row| row.get(0)) {
        warn!(%database, "outbox triggers were dropped or disabled; reporting a gap");
    }
    let rows = admin.rows(NOW, &[]).await?;
    let row = rows.first().ok_or_else(|| unreadable("a position"))?;
    let now = position(row.get(0));
    let earliest = LogPosition(now.0.saturating_sub(shared.settings.retention));
    let read = shared.confirmed(database).unwrap_or(now);
    purge(&admin, keep.max(earliest).min(read).min(now)).await?;
    Ok(now)
}

/// Deletes the changes before a position. Several nodes may do this at the same time.
async fn purge(admin: &CaptureSession, keep: LogPosition) -> LogResult<()> {
    let keep = number(keep);
    // The new start is recorded first. So a stream that would start earlier is refused before
    // anything is deleted.
    if admin.rows(MOVE_START, &[&keep]).await?.is_empty() {
        return Ok(());
    }
    while !admin.rows(DELETE_CHANGES, &[&keep]).await?.is_empty() {}
    Ok(())
}

const INSPECT: &str = "SELECT tidegate_outbox.inspect()";

const NOW: &str = "SELECT tidegate_outbox.advance()";

const MOVE_START: &str = "\
    UPDATE tidegate_outbox.state SET earliest = $1 WHERE earliest < $1 RETURNING earliest";

/// Deletes the changes of a limited number of transactions. Selects a row if it deleted any.
const DELETE_CHANGES: &str = "\
    WITH old AS (DELETE FROM tidegate_outbox.commit WHERE position IN (\
            SELECT position FROM tidegate_outbox.commit WHERE position < $1 \
            ORDER BY position LIMIT 500) RETURNING xid), \
    gone AS (DELETE FROM tidegate_outbox.change h USING old WHERE h.xid = old.xid) \
    SELECT FROM old LIMIT 1";
