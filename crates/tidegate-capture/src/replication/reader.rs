//! The one reader of a database's log that all nodes share. It reads the retention slot itself.
//! PostgreSQL lets only one process at a time use a slot, so there cannot be a second reader.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tokio_postgres::types::ToSql;
use tracing::warn;

use super::session::{COMMAND_TIMEOUT, ReplicationSession};
use super::stream::Stream;
use super::{Shared, slot, tables};
use crate::error;

/// Opens the stream at the start of the retention window. Returns `None` if another process is
/// reading the slot.
pub(super) async fn open(shared: &Shared, database: &DatabaseName) -> LogResult<Option<Stream>> {
    let recreate = tables::prepare(shared, database).await?;
    let mut session = ReplicationSession::open(&shared.reader, database).await?;
    if is_read(&mut session).await? {
        return Ok(None);
    }
    match open_slot(shared, session, recreate).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => {
            // Another node may have opened the stream first. In this case the error is not
            // returned.
            let mut session = ReplicationSession::open(&shared.reader, database).await?;
            let is_read = is_read(&mut session).await?;
            if is_read { Ok(None) } else { Err(error) }
        }
    }
}

async fn open_slot(
    shared: &Shared,
    mut session: ReplicationSession,
    recreate: bool,
) -> LogResult<Stream> {
    let mut state = slot::log_state(&mut session).await?;
    let start = slot::retention_slot(shared, &mut session, &mut state, recreate).await?;
    // Without a retention window there is no slot to share.
    let start = start.ok_or(LogError::Gone)?;
    let slot = (state.retention_slot_name.as_str(), state.lineage);
    let slot_log = shared.missing_log.of(slot.0, start);
    let stream = slot::stream(shared, session, slot, start).await?;
    Ok(stream.of_slot(slot_log).for_all_nodes())
}

async fn is_read(session: &mut ReplicationSession) -> LogResult<bool> {
    let rows = session.run(IS_READ, COMMAND_TIMEOUT).await?;
    Ok(!rows.is_empty())
}

const IS_READ: &str = "\
    SELECT FROM pg_catalog.pg_database d JOIN pg_catalog.pg_replication_slots s \
    ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname \
    WHERE d.datname = pg_catalog.current_database() AND s.active";

/// Terminates the reader's connection if it was opened more than `age` ago. A more recent
/// connection belongs to a reader that has just taken over.
pub(super) async fn close(
    shared: &Shared,
    database: &DatabaseName,
    age: Duration,
) -> LogResult<()> {
    let reader = &shared.reader;
    // `pg_terminate_backend` is called in the login's own database, because in a tenant's database
    // no user may call it.
    let opened = tidegate_service::open(reader, &reader.admin_database).await;
    let client = opened.map_err(|e| error::of_connection(e, &reader.admin_role))?;
    let failed = |error: tokio_postgres::Error| error::of_statement(&error, COMMAND_TIMEOUT);
    let parameters: [&(dyn ToSql + Sync); 2] = [&database.as_str(), &age.as_secs_f64()];
    let closed = client.query(CLOSE, &parameters).await.map_err(failed)?;
    if !closed.is_empty() {
        warn!(%database, "the node that read the changes has fallen silent; its connection was closed");
    }
    Ok(())
}

const CLOSE: &str = "\
    SELECT pg_catalog.pg_terminate_backend(a.pid) \
    FROM pg_catalog.pg_database d JOIN pg_catalog.pg_replication_slots s \
    ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname \
    JOIN pg_catalog.pg_stat_activity a ON a.pid = s.active_pid \
    WHERE d.datname = $1::text AND a.backend_start < \
          pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2)";
