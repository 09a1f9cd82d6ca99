//! The audit log.

use serde::Serialize;
use tidegate_oauth::AuditEvent;

use crate::error::{Error, Result};
use crate::instant;
use crate::query::{Database, Query};

static APPEND: Query = Query::new(
    "insert into tidegate.audit_events \
       (at, kind, detail, database, user_name, client_id, session, address) \
     select at, kind, detail, database, user_name, client_id, \
       session, address \
     from pg_catalog.json_to_recordset(:events::json) as event (at timestamptz, kind text, \
       detail text, database text, user_name text, client_id text, session uuid, address inet)",
);

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    kind: &'static str,
    detail: Option<&'static str>,
    database: Option<String>,
    user_name: Option<String>,
    client_id: Option<String>,
    session: Option<String>,
    address: Option<&'a std::net::IpAddr>,
}

pub(super) async fn append(database: &Database, events: &[AuditEvent]) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let lines: Vec<Line<'_>> = events.iter().map(line).collect();
    let text = serde_json::to_string(&lines).map_err(Error::failed)?;
    database.execute(&APPEND, &[&text]).await?;
    Ok(())
}

fn line(event: &AuditEvent) -> Line<'_> {
    let text = |text: &Option<String>| text.as_deref().map(without_zero_bytes);
    Line {
        at: instant::text(event.at),
        kind: event.kind.name(),
        detail: event.kind.detail(),
        database: text(&event.database),
        user_name: text(&event.user),
        client_id: text(&event.client_id),
        session: event.session.map(|id| format!("{:032x}", id.as_u128())),
        address: event.address.as_ref(),
    }
}

/// Names come as they were tried, and PostgreSQL's text has no zero byte.
fn without_zero_bytes(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
