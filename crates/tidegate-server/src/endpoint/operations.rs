//! Endpoints for operators: liveness, readiness, metrics.

use std::time::Duration;

use futures_util::future::join_all;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value};

use tidegate_identity::Secret;

use tidegate_http::app::{App, Probe};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::{authenticate, forwarded};

/// Marks a request that came through a listener for operators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperatorListener;

/// The timeout for a probe. After the timeout, the part that the probe checks counts as not ready.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Handles `GET /ping`. Clients use it to check a configured URL.
pub(crate) fn ping() -> Response<Body> {
    let mut response = json(&b"pong"[..], NO_STORE);
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Handles `GET /healthz`, which reports that the process runs.
pub(crate) fn health() -> Response<Body> {
    json(&b"{\"status\":\"ok\"}"[..], NO_STORE)
}

/// Handles `GET /readyz`. The status is 200 if every essential part is available; otherwise, and
/// during shutdown, it is 503. If an essential part is unavailable, all parts that are not
/// essential are reported as degraded, because they depend on the essential parts.
pub(crate) async fn readiness(app: &App) -> Response<Body> {
    let (mut checks, mut sources) = (Map::new(), Map::new());
    let mut ready = !app.is_draining();
    if !ready {
        checks.insert("node".to_owned(), "draining".into());
    }
    let replies = join_all(app.probes().iter().map(|probe| is_ready(&**probe))).await;
    let replies = || app.probes().iter().zip(&replies);
    let sound = replies().all(|(probe, is_ready)| *is_ready || !probe.is_essential());
    ready &= sound;
    for (probe, is_ready) in replies() {
        let word = match (*is_ready, probe.is_essential()) {
            (true, is_essential) if is_essential || sound => "ok",
            (_, true) => "unavailable",
            (_, false) => "degraded",
        };
        checks.insert(probe.name().to_owned(), word.into());
        if let Some(source) = probe.source() {
            sources.insert(format!("{}_source", probe.name()), source.into());
        }
    }
    let status = if ready { "ready" } else { "unavailable" };
    let mut body = Map::new();
    body.insert("status".to_owned(), status.into());
    body.insert("checks".to_owned(), Value::Object(checks));
    body.extend(sources);
    let mut response = json(Value::Object(body).to_string(), NO_STORE);
    if !ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

async fn is_ready(probe: &dyn Probe) -> bool {
    tokio::time::timeout(PROBE_TIMEOUT, probe.is_ready())
        .await
        .unwrap_or(false)
}

/// Handles `GET /metrics`: the metrics in Prometheus' text format.
///
/// The metrics contain names of tenants, so access is restricted. If a token is configured, the
/// request must have it. Otherwise a request is allowed only if it comes through a listener for
/// operators, or from a client on this machine.
pub(crate) fn metrics<B>(
    call: &Call<'_, B>,
    paths: &[&'static str],
) -> Result<Response<Body>, ApiError> {
    let Call {
        app, peer, head, ..
    } = call;
    if let Some(token) = app.metrics_token() {
        let shown = authenticate::bearer(&head.headers)?;
        let shown = shown.ok_or_else(|| ApiError::missing_token("metrics_token is required"))?;
        if Secret::new(shown) != *token {
            return Err(ApiError::invalid_token("this is not metrics_token"));
        }
    } else if head.extensions.get::<OperatorListener>().is_none()
        && !forwarded::is_local(*peer, &head.headers)
    {
        return Err(ApiError::not_found(
            "metrics are served on metrics_listen, or here with metrics_token; see OPERATIONS",
        ));
    }
    let text = app
        .metrics()
        .text(paths, app.metrics_sources())
        .map_err(ApiError::internal)?;
    let mut response = json(text, NO_STORE);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
