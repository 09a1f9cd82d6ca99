//! Replication slots: the retention slot, and a copy of it for each stream.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tidegate_changelog::{LogError, LogIdentity, LogPosition, LogResult, LogStart};
use tidegate_sql::DatabaseName;
use tokio_postgres::error::SqlState;
use tracing::{info, warn};

use super::session::ReplicationSession;
use super::stream::Stream;
use super::{EVERYTHING, INSERTS, Shared, tables, unreadable};
use crate::error;

/// The time limit of a command that does not have to wait for others.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);
/// The time limit of advancing the retention slot, for which PostgreSQL reads the log that it
/// releases.
const ADVANCE: Duration = Duration::from_mins(2);

/// The state of a database's log and of its retention slot.
struct LogState {
    identity: LogIdentity,
    retention_slot_name: String,
    retention_slot: Option<RetentionSlot>,
    now: LogPosition,
}

struct RetentionSlot {
    confirmed: LogPosition,
    lost: bool,
}

/// Opens a stream.
pub(super) async fn open(
    shared: &Shared,
    database: &DatabaseName,
    start: LogStart,
) -> LogResult<Stream> {
    let recreate = tables::prepare(shared, database).await?;
    let mut session = ReplicationSession::open(&shared.reader, database).await?;
    let mut place = table(&mut session).await?;
    let Some(earliest) = retention_slot(shared, &mut session, &mut place, recreate).await? else {
        return open_without_retention_slot(shared, session, &place, start).await;
    };
    let start = match start {
        LogStart::At(position) if position < earliest || position > place.now => {
            return Err(LogError::Gone);
        }
        LogStart::At(position) => position,
        LogStart::Earliest => earliest,
        LogStart::Now => place.now.max(earliest),
    };
    let (retention_slot, slot) = (&place.retention_slot_name, slot_name(&place, &session));
    let copy = format!(
        "SELECT pg_catalog.pg_copy_logical_replication_slot('{retention_slot}', '{slot}', true)"
    );
    session.run(&copy, COMMAND_TIMEOUT).await?;
    stream(session, &slot, place.identity, start).await
}

/// Opens a stream without a retention window. The stream starts where its slot is created, and
/// cannot be resumed.
async fn open_without_retention_slot(
    shared: &Shared,
    mut session: ReplicationSession,
    place: &LogState,
    start: LogStart,
) -> LogResult<Stream> {
    if matches!(start, LogStart::At(_)) {
        return Err(LogError::Gone);
    }
    let slot = slot_name(place, &session);
    let start = create(shared, &mut session, &slot, true).await?;
    stream(session, &slot, place.identity, start).await
}

async fn stream(
    session: ReplicationSession,
    slot: &str,
    identity: LogIdentity,
    start: LogPosition,
) -> LogResult<Stream> {
    // Values are requested in text form, because all values of a stream have one form and the codec
    // supports text for every type.
    let command = format!(
        "START_REPLICATION SLOT \"{slot}\" LOGICAL {start} (proto_version '1', \
         publication_names '\"{EVERYTHING}\",\"{INSERTS}\"')"
    );
    let connection = session.start(&command, COMMAND_TIMEOUT).await?;
    Ok(Stream::new(connection, identity, start))
}

fn slot_name(place: &LogState, session: &ReplicationSession) -> String {
    format!("{}_{}", place.retention_slot_name, session.process())
}

async fn table(session: &mut ReplicationSession) -> LogResult<LogState> {
    let wrong = || unreadable("the table of the slots");
    let system = session.run("IDENTIFY_SYSTEM", COMMAND_TIMEOUT).await?;
    let rows = session
        .run(
            "SELECT d.oid, pg_catalog.pg_current_wal_insert_lsn(), s.confirmed_flush_lsn, \
                    s.wal_status, pg_catalog.current_setting('max_slot_wal_keep_size') \
             FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_replication_slots s \
             ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname \
             WHERE d.datname = pg_catalog.current_database()",
            COMMAND_TIMEOUT,
        )
        .await?;
    let (Some(system), Some(row)) = (system.first(), rows.first()) else {
        return Err(wrong());
    };
    let [Some(oid), Some(now), confirmed, status, limit] = row.as_slice() else {
        return Err(wrong());
    };
    if limit.as_deref() == Some("-1") {
        warn_of_unlimited_log();
    }
    let retention_slot = confirmed.as_deref().map(|confirmed| RetentionSlot {
        confirmed: confirmed.parse().unwrap_or_default(),
        lost: status.as_deref() == Some("lost"),
    });
    Ok(LogState {
        identity: identity(system, oid),
        retention_slot_name: format!("tidegate_{oid}"),
        retention_slot,
        now: now.parse().map_err(|()| wrong())?,
    })
}

/// Warns once per process, because the setting belongs to the cluster.
fn warn_of_unlimited_log() {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        warn!(
            "max_slot_wal_keep_size is unlimited: if no node runs, the log that is kept for change \
             events grows until the disk is full; run ALTER SYSTEM SET max_slot_wal_keep_size = \
             '4GB' and reload"
        );
    });
}

/// The identity of a log: a hash of the cluster, its timeline and the database.
fn identity(system: &[Option<String>], database: &str) -> LogIdentity {
    let mut hash = Sha256::new();
    for part in system.iter().take(2).flatten() {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update(database.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, ..] = digest;
    LogIdentity(u32::from_be_bytes([a, b, c, d]))
}

/// The position from which the retention slot keeps the log; `None` if the settings want no slot.
/// Creates the slot if it is missing.
async fn retention_slot(
    shared: &Shared,
    session: &mut ReplicationSession,
    place: &mut LogState,
    recreate: bool,
) -> LogResult<Option<LogPosition>> {
    if shared.settings.retention.is_none() {
        return Ok(None);
    }
    if let Some(retention_slot) = &place.retention_slot {
        // A slot that is older than the publications can never decode them.
        if !retention_slot.lost && !recreate {
            return Ok(Some(retention_slot.confirmed));
        }
        info!(
            slot = place.retention_slot_name,
            "retention slot was lost; creating a new one"
        );
        drop_slot(session, &place.retention_slot_name).await?;
    }
    let made = create(shared, session, &place.retention_slot_name, false).await?;
    place.now = place.now.max(made);
    Ok(Some(made))
}

async fn create(
    shared: &Shared,
    session: &mut ReplicationSession,
    name: &str,
    temporary: bool,
) -> LogResult<LogPosition> {
    let limit = shared.settings.slot_timeout;
    let lock_timeout = format!("SET lock_timeout = {}", limit.as_millis());
    session.run(&lock_timeout, COMMAND_TIMEOUT).await?;
    let create = format!(
        "SELECT lsn FROM pg_catalog.pg_create_logical_replication_slot('{name}', 'pgoutput', \
         {temporary})"
    );
    let made = session
        .run(&create, limit)
        .await
        .map_err(|error| match error {
            LogError::TimedOut { limit, .. } => LogError::TimedOut {
                what: "making a replication slot, which waits for every open transaction of the \
                   cluster,"
                    .to_owned(),
                limit,
            },
            error => error,
        })?;
    let made = made
        .first()
        .and_then(|row| row.first()?.as_deref()?.parse().ok());
    made.ok_or_else(|| unreadable("the position of a new slot"))
}

async fn drop_slot(session: &mut ReplicationSession, name: &str) -> LogResult<()> {
    let command = format!(
        "SELECT pg_catalog.pg_drop_replication_slot(slot_name) \
         FROM pg_catalog.pg_replication_slots WHERE slot_name = '{name}' AND NOT active"
    );
    session.run(&command, COMMAND_TIMEOUT).await?;
    Ok(())
}

/// Advances the retention slot to `keep`, or further if it keeps too much. Only one node at a time
/// can do that.
pub(super) async fn retain(
    shared: &Shared,
    database: &DatabaseName,
    keep: LogPosition,
) -> LogResult<LogPosition> {
    let opened = tidegate_service::open(&shared.reader, database).await;
    let client = opened.map_err(|e| error::of_connection(e, &shared.reader.admin_role))?;
    let failed = |error: tokio_postgres::Error| error::of_statement(&error, ADVANCE);
    let timeout = ADVANCE.as_millis().to_string();
    let row = client
        .query_one(RETENTION_SLOT, &[&timeout])
        .await
        .map_err(failed)?;
    let now: LogPosition = position(row.get(0))?;
    let (Some(slot), Some(confirmed)) = (row.get::<_, Option<&str>>(1), row.get(2)) else {
        return Ok(now);
    };
    let most = shared.settings.retention.unwrap_or(0);
    let keep = keep.max(LogPosition(now.0.saturating_sub(most))).min(now);
    if keep > position(confirmed)? {
        let advanced = client
            .execute(ADVANCE_RETENTION_SLOT, &[&slot, &keep.to_string()])
            .await;
        match advanced {
            // Another node is advancing the slot, or has advanced it further.
            Err(error) if error.code().is_some_and(is_slot_conflict) => {}
            advanced => drop(advanced.map_err(failed)?),
        }
    }
    Ok(now)
}

/// Whether the error means that another session uses the slot, or that the slot is already beyond
/// the position.
fn is_slot_conflict(code: &SqlState) -> bool {
    [
        SqlState::OBJECT_IN_USE,
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    ]
    .contains(code)
}

const ADVANCE_RETENTION_SLOT: &str =
    "SELECT pg_catalog.pg_replication_slot_advance($1::text::name, $2::text::pg_lsn)";

/// Selects the end of the log, and the retention slot if it exists and is not in use. The parameter
/// is the timeout for the next statement.
const RETENTION_SLOT: &str = "\
    SELECT pg_catalog.pg_current_wal_flush_lsn()::text, s.slot_name::text, \
           s.confirmed_flush_lsn::text, \
           pg_catalog.set_config('statement_timeout', $1::text, false) \
    FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_replication_slots s \
    ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname AND NOT s.active \
    WHERE d.datname = pg_catalog.current_database()";

fn position(text: &str) -> LogResult<LogPosition> {
    text.parse()
        .map_err(|()| unreadable("a position of the log"))
}

/// Drops the retention slot, unless another node still reads the log.
pub(super) async fn abandon(shared: &Shared, database: &DatabaseName) -> LogResult<()> {
    let opened = tidegate_service::open(&shared.reader, database).await;
    let client = opened.map_err(|e| error::of_connection(e, &shared.reader.admin_role))?;
    client
        .batch_execute(
            "SELECT pg_catalog.pg_drop_replication_slot(s.slot_name) \
             FROM pg_catalog.pg_database d JOIN pg_catalog.pg_replication_slots s \
             ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname \
             WHERE d.datname = pg_catalog.current_database() AND NOT s.active \
             AND NOT EXISTS (SELECT FROM pg_catalog.pg_replication_slots o \
                             WHERE pg_catalog.starts_with(o.slot_name::text, s.slot_name || '_'))",
        )
        .await
        .map_err(|error| error::of_statement(&error, COMMAND_TIMEOUT))
}
