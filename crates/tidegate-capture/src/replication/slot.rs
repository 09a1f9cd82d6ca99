//! Replication slots: the retention slot, and a copy of it for each stream.

use std::time::Duration;

use tidegate_changelog::{Lineage, LogError, LogPosition, LogResult, LogStart};
use tidegate_service::KeptConnectionError;
use tidegate_sql::DatabaseName;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tracing::{debug, info, warn};

use super::session::{COMMAND_TIMEOUT, ReplicationSession, TextRow};
use super::stream::Stream;
use super::{EVERYTHING, INSERTS, Shared, lineage, tables, unreadable};
use crate::error;

/// The time limit for advancing the retention slot. To advance a slot, PostgreSQL reads the log
/// that the slot releases.
const ADVANCE_TIMEOUT: Duration = Duration::from_mins(2);

/// The state of a database's log and of its retention slot.
pub(super) struct LogState {
    pub(super) lineage: Lineage,
    pub(super) retention_slot_name: String,
    /// `None` if the slot does not exist.
    retention_slot: Option<RetentionSlot>,
    /// The end of the log when this state was read, or the position of a retention slot that was
    /// created afterwards.
    now: LogPosition,
    /// `server_version_num`.
    server_version: u32,
}

struct RetentionSlot {
    /// The position from which the slot keeps the log.
    confirmed: LogPosition,
    /// Whether PostgreSQL has removed log that the slot needs.
    lost: bool,
    /// Whether standbys may have a copy of the slot; `None` before PostgreSQL 17.
    failover: Option<bool>,
}

/// Opens a stream; see [`tidegate_changelog::ChangeLog::open`].
pub(super) async fn open(
    shared: &Shared,
    database: &DatabaseName,
    start: LogStart,
) -> LogResult<Stream> {
    let recreate = tables::prepare(shared, database).await?;
    let mut session = ReplicationSession::open(&shared.reader, database).await?;
    let mut state = log_state(&mut session).await?;
    let kept = retention_slot(shared, &mut session, &mut state, recreate).await?;
    if kept.is_none() {
        return open_without_retention_slot(shared, session, state, start).await;
    }
    let (retention_slot, slot) = (&state.retention_slot_name, slot_name(&state, &session));
    let copy = format!(
        "SELECT lsn FROM \
         pg_catalog.pg_copy_logical_replication_slot('{retention_slot}', '{slot}', true)"
    );
    // The position of the copy counts, because another node may have advanced the retention slot
    // since its position was read. If the stream requested an earlier position than that of the
    // copy, PostgreSQL would silently begin at the position of the copy.
    let copied = session.run(&copy, COMMAND_TIMEOUT).await?;
    let earliest = position_of_slot(&copied)?;
    let start = match start {
        LogStart::At { log, position }
            if !state.lineage.contains(log, position)
                || position < earliest
                || position > state.now =>
        {
            return Err(LogError::Gone);
        }
        LogStart::At { position, .. } => position,
        LogStart::Earliest => earliest,
        LogStart::Now => state.now.max(earliest),
    };
    let slot_log = shared.missing_log.of(retention_slot, earliest);
    let stream = stream(shared, session, (&slot, state.lineage), start).await?;
    Ok(stream.of_slot(slot_log))
}

/// Opens a stream without a retention window. The stream starts at the position of its new slot,
/// and cannot be resumed.
async fn open_without_retention_slot(
    shared: &Shared,
    mut session: ReplicationSession,
    state: LogState,
    start: LogStart,
) -> LogResult<Stream> {
    if matches!(start, LogStart::At { .. }) {
        return Err(LogError::Gone);
    }
    let slot = slot_name(&state, &session);
    let options = slot_options(state.server_version, true);
    let start = create(shared, &mut session, &slot, options).await?;
    stream(shared, session, (&slot, state.lineage), start).await
}

pub(super) async fn stream(
    shared: &Shared,
    mut session: ReplicationSession,
    (slot, lineage): (&str, Lineage),
    start: LogPosition,
) -> LogResult<Stream> {
    if let Some(node) = shared.settings.node {
        let name = format!("SET application_name = 'tidegate reader {node:08x}'");
        session.run(&name, COMMAND_TIMEOUT).await?;
    }
    // Without the option `binary`, PostgreSQL sends all values in text form, which the codec
    // supports for every type.
    let command = format!(
        "START_REPLICATION SLOT \"{slot}\" LOGICAL {start} (proto_version '1', \
         publication_names '\"{EVERYTHING}\",\"{INSERTS}\"')"
    );
    let connection = session.start(&command, COMMAND_TIMEOUT).await?;
    Ok(Stream::new(connection, lineage, start))
}

fn slot_name(state: &LogState, session: &ReplicationSession) -> String {
    format!("{}_{}", state.retention_slot_name, session.process())
}

pub(super) async fn log_state(session: &mut ReplicationSession) -> LogResult<LogState> {
    let wrong = || unreadable("the table of the slots");
    let system = session.run("IDENTIFY_SYSTEM", COMMAND_TIMEOUT).await?;
    let rows = session
        .run(
            "SELECT d.oid, pg_catalog.pg_current_wal_insert_lsn(), s.confirmed_flush_lsn, \
                    s.wal_status, pg_catalog.current_setting('max_slot_wal_keep_size'), \
                    pg_catalog.to_jsonb(s) ->> 'failover', \
                    pg_catalog.current_setting('server_version_num') \
             FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_replication_slots s \
             ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname \
             WHERE d.datname = pg_catalog.current_database()",
            COMMAND_TIMEOUT,
        )
        .await?;
    let (Some(system), Some(row)) = (system.first(), rows.first()) else {
        return Err(wrong());
    };
    let [
        Some(oid),
        Some(now),
        confirmed,
        status,
        limit,
        failover,
        Some(version),
    ] = row.as_slice()
    else {
        return Err(wrong());
    };
    if limit.as_deref() == Some("-1") {
        warn_of_unlimited_log();
    }
    let retention_slot = confirmed.as_deref().map(|confirmed| RetentionSlot {
        confirmed: confirmed.parse().unwrap_or_default(),
        lost: status.as_deref() == Some("lost"),
        failover: failover.as_deref().map(|failover| failover == "true"),
    });
    let lineage = lineage::of(session, system, oid).await?;
    Ok(LogState {
        lineage,
        retention_slot_name: format!("tidegate_{oid}"),
        retention_slot,
        now: now.parse().map_err(|()| wrong())?,
        server_version: version.parse().map_err(|_| wrong())?,
    })
}

/// Warns that WAL is kept without limit. Warns only once per process, because the setting belongs
/// to the cluster.
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

/// Returns the position from which the retention slot keeps the log; `None` if the settings say
/// that there is no slot. Creates the slot if it is missing or lost. With `recreate`, replaces an
/// existing slot in any case.
pub(super) async fn retention_slot(
    shared: &Shared,
    session: &mut ReplicationSession,
    state: &mut LogState,
    recreate: bool,
) -> LogResult<Option<LogPosition>> {
    if shared.settings.retention.is_none() {
        return Ok(None);
    }
    if let Some(retention_slot) = &state.retention_slot {
        let (name, confirmed) = (&state.retention_slot_name, retention_slot.confirmed);
        let is_lost = retention_slot.lost || shared.missing_log.has(name, confirmed);
        // `recreate` means that the slot is older than the publications. Such a slot can never
        // decode changes for them.
        if !is_lost && !recreate {
            if retention_slot.failover == Some(false) {
                enable_failover(session, name).await?;
            }
            return Ok(Some(confirmed));
        }
        info!(slot = name, "retention slot was lost; creating a new one");
        drop_slot(session, name).await?;
    }
    let options = slot_options(state.server_version, false);
    let made = create(shared, session, &state.retention_slot_name, options).await?;
    state.now = state.now.max(made);
    shared.missing_log.forget(&state.retention_slot_name);
    Ok(Some(made))
}

/// Lets standbys copy a slot that an earlier release of Tidegate created. This fails while another
/// node is using the slot; then it is repeated when the next stream is opened.
async fn enable_failover(session: &mut ReplicationSession, name: &str) -> LogResult<()> {
    let command = format!("ALTER_REPLICATION_SLOT \"{name}\" (FAILOVER true)");
    match session.run(&command, COMMAND_TIMEOUT).await {
        Err(error @ LogError::TimedOut { .. }) => Err(error),
        Err(error) => {
            debug!(%error, slot = name, "the slot could not be made a failover slot");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

/// The last arguments of `pg_create_logical_replication_slot`. From PostgreSQL 17 on, they let
/// standbys copy a permanent slot, so that cursors remain valid after a promotion. Standbys cannot
/// copy a temporary slot.
fn slot_options(server_version: u32, temporary: bool) -> &'static str {
    match (temporary, server_version) {
        (true, _) => "true",
        (false, 170_000..) => "false, false, true",
        (false, _) => "false",
    }
}

async fn create(
    shared: &Shared,
    session: &mut ReplicationSession,
    name: &str,
    options: &'static str,
) -> LogResult<LogPosition> {
    let limit = shared.settings.slot_timeout;
    let lock_timeout = format!("SET lock_timeout = {}", limit.as_millis());
    session.run(&lock_timeout, COMMAND_TIMEOUT).await?;
    let create = format!(
        "SELECT lsn FROM pg_catalog.pg_create_logical_replication_slot('{name}', 'pgoutput', \
         {options})"
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
    position_of_slot(&made)
}

/// Reads the position of a slot that was created or copied.
fn position_of_slot(rows: &[TextRow]) -> LogResult<LogPosition> {
    let position = rows
        .first()
        .and_then(|row| row.first()?.as_deref()?.parse().ok());
    position.ok_or_else(|| unreadable("the position of a new slot"))
}

async fn drop_slot(session: &mut ReplicationSession, name: &str) -> LogResult<()> {
    let command = format!(
        "SELECT pg_catalog.pg_drop_replication_slot(slot_name) \
         FROM pg_catalog.pg_replication_slots WHERE slot_name = '{name}' AND NOT active"
    );
    session.run(&command, COMMAND_TIMEOUT).await?;
    Ok(())
}

/// Advances the retention slot to `keep`, or further if the log after `keep` is larger than the
/// limit of the retention window. Returns the end of the log.
///
/// Advancing the slot needs a login, because only a session in the slot's database can do it.
/// Therefore the position of the slot is read in the control database, and the slot is advanced
/// only at intervals, unless the slot keeps more log than the limit.
pub(super) async fn retain(
    shared: &Shared,
    database: &DatabaseName,
    keep: LogPosition,
) -> LogResult<LogPosition> {
    let row = end_and_slot(shared, database).await?;
    let now: LogPosition = position(row.get(0))?;
    let (Some(slot), Some(confirmed)) = (row.get::<_, Option<&str>>(1), row.get(2)) else {
        return Ok(now);
    };
    let confirmed = position(confirmed)?;
    let max_bytes = shared.settings.retention.unwrap_or(0);
    let earliest = LogPosition(now.0.saturating_sub(max_bytes));
    let keep = keep.max(earliest).min(now);
    if keep > confirmed && (confirmed < earliest || shared.is_advance_due(database)) {
        advance(shared, database, slot, keep).await?;
    }
    Ok(now)
}

/// The end of the log; see [`tidegate_changelog::SharedLog::end`].
pub(super) async fn end(shared: &Shared, database: &DatabaseName) -> LogResult<LogPosition> {
    position(end_and_slot(shared, database).await?.get(0))
}

/// The row of [`END_AND_SLOT`], read in the control database.
async fn end_and_slot(shared: &Shared, database: &DatabaseName) -> LogResult<Row> {
    let name = database.as_str();
    let rows = shared.control.query(END_AND_SLOT, &[&name]).await;
    let rows = rows.map_err(|failed| match failed {
        KeptConnectionError::Connect(e) => error::of_connection(e, &shared.logins.admin.admin_role),
        KeptConnectionError::Statement(e) => error::of_statement(&e, COMMAND_TIMEOUT),
    })?;
    rows.into_iter().next().ok_or(LogError::Gone)
}

async fn advance(
    shared: &Shared,
    database: &DatabaseName,
    slot: &str,
    keep: LogPosition,
) -> LogResult<()> {
    let opened = tidegate_service::open(&shared.reader, database).await;
    let client = opened.map_err(|e| error::of_connection(e, &shared.reader.admin_role))?;
    let failed = |error: tokio_postgres::Error| error::of_statement(&error, ADVANCE_TIMEOUT);
    let timeout = format!("SET statement_timeout = {}", ADVANCE_TIMEOUT.as_millis());
    client.batch_execute(&timeout).await.map_err(failed)?;
    let advanced = client
        .execute(ADVANCE_RETENTION_SLOT, &[&slot, &keep.to_string()])
        .await;
    match advanced {
        // Another node is advancing the slot, or has advanced it further.
        Err(error) if error.code().is_some_and(is_slot_conflict) => {}
        advanced => drop(advanced.map_err(failed)?),
    }
    shared.record_advance(database);
    Ok(())
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

/// Selects the end of the log, and the retention slot of the database `$1` if it exists and is not
/// in use.
const END_AND_SLOT: &str = "\
    SELECT pg_catalog.pg_current_wal_flush_lsn()::text, s.slot_name::text, \
           s.confirmed_flush_lsn::text \
    FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_replication_slots s \
    ON s.slot_name = 'tidegate_' || d.oid AND s.database = d.datname AND NOT s.active \
    WHERE d.datname = $1::text";

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
