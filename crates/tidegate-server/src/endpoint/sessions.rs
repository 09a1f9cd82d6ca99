//! The endpoint `/api/v4/sessions`: the OAuth sessions of a tenant. A user sees and ends its own
//! sessions; the owner sees and ends the sessions of all users.

use http::Response;
use serde::Serialize;
use tidegate_identity::SessionId;
use tidegate_oauth::{Scope, Session};

use super::rest;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;

#[derive(Serialize)]
struct SessionView<'a> {
    id: String,
    user: &'a str,
    client_id: &'a str,
    grant: &'static str,
    scope: String,
    created_at: String,
    refreshed_at: String,
    expires_at: String,
    /// Whether the token of the request belongs to the session.
    current: bool,
}

/// Handles `GET`, which lists the active sessions that the caller may see. `?user=` selects the
/// sessions of one user.
pub(crate) async fn list<B>(mut call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let caller = rest::user(&mut call, Scope::Admin).await?;
    let query = rest::query(call.head, &["user"])?;
    let user = query.last().map(|(_, value)| value.as_str());
    let found = call.app.issuer().sessions(&caller.claims, user).await;
    let sessions = found.map_err(|error| rest::naming(error, "user", user.unwrap_or_default()))?;
    let current = caller.claims.session;
    let sessions: Vec<_> = sessions.iter().map(|one| shown(one, current)).collect();
    rest::shown(&sessions)
}

fn shown(session: &Session, current: SessionId) -> SessionView<'_> {
    SessionView {
        id: session.id.to_string(),
        user: &session.user.name,
        client_id: &session.client_id,
        grant: session.grant.name(),
        scope: session.scopes.to_string(),
        created_at: rest::time(session.created_at),
        refreshed_at: rest::time(session.refreshed_at),
        expires_at: rest::time(session.expires_at),
        current: session.id == current,
    }
}

/// Handles `DELETE`, which ends the sessions in the path.
pub(crate) async fn end<B>(mut call: Call<'_, B>, ids: &str) -> Result<Response<Body>, ApiError> {
    let caller = rest::user(&mut call, Scope::Admin).await?;
    let (app, address) = (call.app, call.client_address());
    let names = rest::names(app, ids)?;
    let missing = || ApiError::not_found("there is no such session");
    let parse = |name: &&str| SessionId::parse(name).ok_or_else(missing);
    let ids = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let issuer = app.issuer();
    let ended = issuer
        .end_sessions(&caller.claims, &ids, Some(address))
        .await;
    ended.map_err(ApiError::from_accounts)?;
    Ok(no_content())
}
