//! `GET /api/v4/audit`: the audit log of the tenant, for its owner.

use http::Response;
use serde::Serialize;
use tidegate_identity::{AuditEntry, AuditSince, Timestamp};

use super::rest;
use tidegate_http::authenticate::Scope;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;

const DEFAULT_EVENTS: u32 = 100;
const MAX_EVENTS: u32 = 1_000;

#[derive(Serialize)]
struct AuditPageView<'a> {
    events: Vec<AuditEvent<'a>>,
    /// The value of `since` for the request of the next page.
    next: u64,
}

#[derive(Serialize)]
struct AuditEvent<'a> {
    id: u64,
    at: String,
    #[serde(rename = "event")]
    kind: &'a str,
    detail: Option<&'a str>,
    user: Option<&'a str>,
    client_id: Option<&'a str>,
    session: Option<String>,
    address: Option<String>,
    actor: Option<&'a str>,
}

/// Returns the events of the tenant from `since` on, sorted by id. The parameter `since` is the id
/// of an event, or a time.
pub(crate) async fn read<B>(mut call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let user = rest::user(&mut call, Scope::Admin).await?;
    rest::require_owner(&user.claims)?;
    let (mut since, mut limit) = (AuditSince::Number(0), DEFAULT_EVENTS);
    for (name, value) in rest::query(call.head, &["since", "limit"])? {
        match name.as_str() {
            "since" => since = beginning(&value)?,
            _ => limit = number(&value)?,
        }
    }
    let page = call.app.store().audit(&user.claims.database, since, limit);
    let page = page.await.map_err(ApiError::from_accounts)?;
    rest::shown(&AuditPageView {
        events: page.entries.iter().map(event).collect(),
        next: page.next,
    })
}

fn beginning(value: &str) -> Result<AuditSince, ApiError> {
    if let Ok(number) = value.parse() {
        return Ok(AuditSince::Number(number));
    }
    let midnight = || {
        let date = value.parse::<jiff::civil::Date>().ok()?;
        // Only a value with the length of a date may lack a time zone. A longer value has a time
        // and therefore needs a time zone.
        let alone = value.len() == "2026-11-21".len();
        let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        alone.then(|| midnight.timestamp())
    };
    match value.parse().ok().or_else(midnight) {
        Some(at) => Ok(AuditSince::Time(Timestamp::from_millis(
            at.as_millisecond(),
        ))),
        None => Err(ApiError::input(
            "`since`: expected the `next` of another page, or a time such as 2026-11-21T00:00:00Z",
        )),
    }
}

fn number(value: &str) -> Result<u32, ApiError> {
    let limit = value
        .parse()
        .ok()
        .filter(|limit| (1..=MAX_EVENTS).contains(limit));
    limit.ok_or_else(|| {
        ApiError::input(format!("`limit`: expected a number from 1 to {MAX_EVENTS}"))
    })
}

fn event(entry: &AuditEntry) -> AuditEvent<'_> {
    let at = jiff::Timestamp::from_millisecond(entry.at.millis());
    AuditEvent {
        id: entry.number,
        at: at.unwrap_or(jiff::Timestamp::MAX).to_string(),
        kind: &entry.event,
        detail: entry.detail.as_deref(),
        user: entry.user.as_deref(),
        client_id: entry.client_id.as_deref(),
        session: entry.session.map(|id| id.to_string()),
        address: entry.address.map(|address| address.to_string()),
        actor: entry.actor.as_deref(),
    }
}
