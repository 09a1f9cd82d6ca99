//! Removes triggers from tables, and abandons the outbox.

use std::time::Duration;

use tidegate_changelog::LogResult;
use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::locked_work::LockedWork;
use super::readers::readers;
use super::{Shared, schema};
use crate::capture_session::CaptureSession;

/// The total time limit of all attempts to get a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Ends captures; see [`tidegate_changelog::ChangeLog::release`]. Does nothing while another stream
/// is open, because its subscribers may need other tables.
pub(super) async fn release(
    shared: &Shared,
    database: &DatabaseName,
    kept: &[u32],
) -> LogResult<()> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    if !schema::exists(&admin).await? {
        return Ok(());
    }
    // After `FORGET` has run, no node treats the released tables as captured.
    let deadline = Instant::now() + LOCK_TIMEOUT;
    admin
        .retry_until_locked(deadline, LockedWork::Rows(FORGET, &[&kept]))
        .await?;
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await? {
        detach(&owner, kept).await?;
    }
    detach(&admin, kept).await
}

/// Drops the triggers that this session may drop, except those of the tables `kept`.
async fn detach(session: &CaptureSession, kept: &[u32]) -> LogResult<()> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    for row in session.rows(TRIGGERS, &[&kept]).await? {
        let command: &str = row.get(0);
        session
            .retry_until_locked(deadline, LockedWork::RunUnlessRead(1, command))
            .await?;
    }
    Ok(())
}

/// Deletes all changes and stops the triggers from writing, unless a stream is open.
pub(super) async fn abandon(shared: &Shared, database: &DatabaseName) -> LogResult<()> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    if !schema::exists(&admin).await? {
        return Ok(());
    }
    let deadline = Instant::now() + LOCK_TIMEOUT;
    admin
        .retry_until_locked(deadline, LockedWork::RunUnlessRead(0, EMPTY))
        .await?;
    Ok(())
}

const FORGET: &str = concat!(
    "DELETE FROM tidegate_outbox.captured WHERE NOT relation = ANY ($1) \
     AND (SELECT pg_catalog.count(*) FROM (",
    readers!(),
    ") r) < 2"
);

const TRIGGERS: &str = "\
    SELECT pg_catalog.string_agg(pg_catalog.format('DROP TRIGGER IF EXISTS %I ON %I.%I', \
           t.tgname, n.nspname, c.relname), '; ') \
    FROM pg_catalog.pg_trigger t \
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid \
    JOIN pg_catalog.pg_namespace o ON o.oid = p.pronamespace \
    WHERE o.nspname = 'tidegate_outbox' AND t.tgparentid = 0 \
    AND NOT c.oid = ANY ($1) AND pg_catalog.pg_has_role(c.relowner, 'USAGE') \
    GROUP BY c.oid";

const EMPTY: &str = "\
    SELECT pg_catalog.setval('tidegate_outbox.lease', 1); \
    TRUNCATE tidegate_outbox.change, tidegate_outbox.commit, tidegate_outbox.layout; \
    UPDATE tidegate_outbox.captured SET since = NULL; \
    UPDATE tidegate_outbox.state SET earliest = position + 1, position = position + 1, \
           seen = pg_catalog.pg_current_snapshot()";
