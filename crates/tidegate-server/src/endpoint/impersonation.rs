//! `POST /api/v4/users/{name}/token`: a token that lets the owner act as a user.

use http::HeaderValue;
use http::Response;
use http::header::PRAGMA;

use super::rest;
use tidegate_http::authenticate::Scope;
use tidegate_http::body::Body;
use tidegate_http::call::{Call, json};
use tidegate_http::error::{ApiError, NO_STORE};

/// Issues the token. The request needs no body.
pub(crate) async fn token<B>(
    mut call: Call<'_, B>,
    name: &str,
) -> Result<Response<Body>, ApiError> {
    let owner = rest::user(&mut call, Scope::Admin).await?;
    rest::require_encrypted(call.app, call.peer, call.head)?;
    let address = call.client_address();
    let issuer = call.app.issuer();
    let token = issuer.impersonate(&owner.claims, name, Some(address)).await;
    let token = token.map_err(|error| rest::naming(error, "user", name))?;
    let mut response = json(token.to_json(), NO_STORE);
    let headers = response.headers_mut();
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    Ok(response)
}
