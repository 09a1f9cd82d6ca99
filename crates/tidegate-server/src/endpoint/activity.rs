//! `GET /api/v4/activity`: the tenant's recent requests on this node, for its owner.

use http::Response;
use serde::Serialize;

use super::rest;
use tidegate_http::activity::RecentStatement;
use tidegate_http::authenticate::Scope;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;

#[derive(Serialize)]
struct ActivityView {
    now: String,
    requests: Vec<u32>,
    errors: Vec<u32>,
    statements: Vec<Statement>,
    feed: Option<Feed>,
}

#[derive(Serialize)]
struct Statement {
    at: String,
    #[serde(flatten)]
    remembered: RecentStatement,
}

#[derive(Serialize)]
struct Feed {
    live: bool,
    subscriptions: usize,
    lag_bytes: u64,
    lag_seconds: f64,
    queued_events: usize,
    resyncs: u64,
    slow_consumers: u64,
}

/// Returns the counts of the last five minutes, the statements that were slow or failed, and the
/// state of the tenant's change feed.
pub(crate) async fn read<B>(mut call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let owner = rest::user(&mut call, Scope::Admin).await?;
    rest::require_owner(&owner.claims)?;
    let (app, database) = (call.app, &owner.login.database);
    let now = app.issuer().now().millis();
    let recent = app.activity().recent(database, now);
    let statement = |remembered: RecentStatement| Statement {
        at: time(remembered.at),
        remembered,
    };
    rest::shown(&ActivityView {
        now: time(now),
        requests: recent.requests,
        errors: recent.errors,
        statements: recent.statements.into_iter().map(statement).collect(),
        feed: app.feed().and_then(|feed| {
            let mut known = feed.status().into_iter();
            let status = known.find(|status| status.database == *database)?;
            Some(Feed {
                live: status.live,
                subscriptions: status.subscriptions,
                lag_bytes: status.lag_bytes,
                lag_seconds: status.lag.as_secs_f64(),
                queued_events: status.queued_events,
                resyncs: status.resyncs,
                slow_consumers: status.slow_consumers,
            })
        }),
    })
}

fn time(millis: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(millis);
    at.unwrap_or(jiff::Timestamp::MAX).to_string()
}
