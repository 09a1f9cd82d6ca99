//! The table of audit events.

use serde::Serialize;
use tidegate_identity::{AuditEntry, AuditEvent, AuditPage, AuditSince, SessionId};

use crate::error::{Error, Result};
use crate::instant;
use crate::query::{Argument, Database, Query};
use crate::row::{self, Record};

/// The key of an advisory lock. Writers share the lock until they commit. A reader takes the lock
/// exclusively, and so waits until all events that are being appended are committed. The number is
/// the ASCII text `tideaudt`.
const LOCK: i64 = 0x7469_6465_6175_6474;

/// Appends events. The rows are selected from the result of the lock function, so they get their
/// numbers after the lock is taken.
static APPEND: Query = Query::new(
    "insert into tidegate.audit_events \
       (at, kind, detail, database, user_name, client_id, session, address, actor) \
     select at, kind, detail, database, user_name, client_id, \
       session, address, actor \
     from pg_catalog.pg_advisory_xact_lock_shared(:lock::bigint) as held, \
       pg_catalog.json_to_recordset(:events::json) as event (at timestamptz, kind text, \
       detail text, database text, user_name text, client_id text, session uuid, address inet, \
       actor text)",
);
/// Waits until no writer holds the lock. Once the lock is taken, all events up to the highest
/// visible number are committed, and later events get higher numbers.
static WAIT: Query =
    Query::new("select 1::bigint from pg_catalog.pg_advisory_xact_lock(:lock::bigint)");
static HIGHEST: Query = Query::new(
    "select coalesce(pg_catalog.max(number), 0)::bigint from tidegate.audit_events \
     where database = :database",
);
static PAGE: Query = Query::new(
    "select number, at, kind, detail, user_name, client_id, session, \
       pg_catalog.host(address), actor from tidegate.audit_events \
     where database = :database and number > :after::bigint and number <= :highest::bigint \
       and (:since::timestamptz is null or at >= :since::timestamptz) \
     order by number limit :limit::bigint",
);

/// A row for [`APPEND`].
#[derive(Serialize)]
struct StoredEvent<'a> {
    at: String,
    kind: &'static str,
    detail: Option<String>,
    database: Option<String>,
    user_name: Option<String>,
    client_id: Option<String>,
    session: Option<String>,
    address: Option<&'a std::net::IpAddr>,
    actor: Option<String>,
}

pub(super) async fn append(database: &Database, events: &[AuditEvent]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let rows: Vec<StoredEvent<'_>> = events.iter().map(stored).collect();
    let text = serde_json::to_string(&rows).map_err(Error::failed)?;
    database.execute(&APPEND, &[&LOCK, &text]).await?;
    Ok(())
}

/// A page of the audit log. The reader releases the lock before it reads the page, so that a slow
/// reader does not block writers.
pub(super) async fn page(
    database: &Database,
    tenant: &str,
    since: AuditSince,
    limit: u32,
) -> Result<AuditPage> {
    let mut open = database.begin().await?;
    open.row(&WAIT, &[&LOCK], row::nothing).await?;
    let highest = open.row(&HIGHEST, &[&tenant], row::count).await?;
    open.commit().await?;
    let (after, at) = match since {
        AuditSince::Number(number) => (number.min(i64::MAX.unsigned_abs()), None),
        AuditSince::Time(at) => (0, Some(at)),
    };
    let (highest, most) = (highest.unwrap_or(0), u64::from(limit));
    let values: [Argument<'_>; 5] = [&tenant, &after, &highest, &at, &most];
    let entries = database.rows(&PAGE, &values, read).await?;
    Ok(AuditPage::new(entries, limit, since, highest))
}

fn read(row: &mut Record<'_>) -> Result<AuditEntry> {
    Ok(AuditEntry {
        number: row.count()?,
        at: row.timestamp()?,
        event: row.string()?,
        detail: row.optional_string()?,
        user: row.optional_string()?,
        client_id: row.optional_string()?,
        session: row
            .optional_bytes()?
            .map(|bytes| bytes.try_into().map(SessionId::from_bytes))
            .transpose()
            .map_err(Error::failed)?,
        address: row
            .optional_text()?
            .map(str::parse)
            .transpose()
            .map_err(Error::failed)?,
        actor: row.optional_string()?,
    })
}

fn stored(event: &AuditEvent) -> StoredEvent<'_> {
    let text = |text: &Option<String>| text.as_deref().map(without_zero_bytes);
    StoredEvent {
        at: instant::text(event.at),
        kind: event.kind.name(),
        detail: event.detail().map(without_zero_bytes),
        database: text(&event.database),
        user_name: text(&event.user),
        client_id: text(&event.client_id),
        session: event.session.map(|id| format!("{:032x}", id.as_u128())),
        address: event.address.as_ref(),
        actor: text(&event.actor),
    }
}

/// Replaces zero bytes, which PostgreSQL's `text` cannot contain. An event may have zero bytes,
/// because it contains the user name of the request even if the name is invalid.
fn without_zero_bytes(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
