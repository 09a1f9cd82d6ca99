//! `/api/v4/tokens`: personal access tokens. A user creates, lists and revokes its own tokens. The
//! owner of the tenant also lists and revokes the tokens of its users.

use http::{Method as Verb, Response, StatusCode};
use serde::Serialize;
use tidegate_identity::{SessionId, Timestamp};
use tidegate_oauth::{CreatedPersonalToken, NewPersonalToken, Scope, Scopes, Session};

use super::rest::{self, Links, ObjectMembers};
use tidegate_http::body::Body;
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

const BASE: &str = "/api/v4/tokens";
const MEMBERS: &str = "name, expires_at, scopes";

/// A token in a list, without its secret.
#[derive(Serialize)]
struct TokenView<'a> {
    id: String,
    name: &'a str,
    user: &'a str,
    scopes: Vec<&'static str>,
    created_at: String,
    expires_at: String,
    /// Null for a token that was never used.
    last_used_at: Option<String>,
}

/// A new token. Only this response has the secret.
#[derive(Serialize)]
struct Created<'a> {
    _links: Links,
    id: String,
    token: &'a str,
    expires_at: String,
}

/// Handles `/api/v4/tokens`. `GET` lists the personal access tokens that the caller may see;
/// `?user=` selects the tokens of one user. `POST` creates a token.
pub(crate) async fn collection<B: IncomingBody>(
    mut call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let caller = rest::user(&mut call, Scope::Admin).await?;
    let issuer = call.app.issuer();
    if call.head.method != Verb::POST {
        let query = rest::query(call.head, &["user"])?;
        let user = query.last().map(|(_, value)| value.as_str());
        let found = issuer.personal_tokens(&caller.claims, user).await;
        let found = found.map_err(|error| rest::naming(error, "user", user.unwrap_or_default()))?;
        return rest::shown(&found.iter().map(shown).collect::<Vec<_>>());
    }
    rest::require_encrypted(call.app, call.peer, call.head)?;
    let address = call.client_address();
    let members = rest::object_of(call.app, call.head, call.body, call.subject).await?;
    let new = read(members)?;
    let created = issuer.create_personal_token(&caller.claims, new, Some(address));
    let CreatedPersonalToken { session, secret } =
        created.await.map_err(ApiError::from_accounts)?;
    let id = session.id.to_string();
    let body = Created {
        _links: Links::to(BASE, &id),
        token: secret.expose(),
        expires_at: rest::time(session.closes_at),
        id,
    };
    let location = format!("{BASE}/{}", body.id);
    rest::located(StatusCode::CREATED, &location, &body)
}

/// Handles `DELETE`, which revokes the tokens in the path.
pub(crate) async fn revoke<B>(
    mut call: Call<'_, B>,
    ids: &str,
) -> Result<Response<Body>, ApiError> {
    let caller = rest::user(&mut call, Scope::Admin).await?;
    let (app, address) = (call.app, call.client_address());
    let missing = || ApiError::not_found("there is no such token");
    let names = rest::names(app, ids)?;
    let parse = |name: &&str| SessionId::parse(name).ok_or_else(missing);
    let ids = names.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let revoked = app
        .issuer()
        .revoke_personal_tokens(&caller.claims, &ids, Some(address));
    revoked.await.map_err(ApiError::from_accounts)?;
    Ok(no_content())
}

fn shown(session: &Session) -> TokenView<'_> {
    let token = session.personal.as_ref();
    let used = session.refreshed_at > session.created_at;
    TokenView {
        id: session.id.to_string(),
        name: token.map_or("", |token| &token.name),
        user: &session.user.name,
        scopes: session.scopes.names().collect(),
        created_at: rest::time(session.created_at),
        expires_at: rest::time(session.closes_at),
        last_used_at: used.then(|| rest::time(session.refreshed_at)),
    }
}

fn read(mut members: ObjectMembers) -> Result<NewPersonalToken, ApiError> {
    let name = members.required("name")?;
    let expires_at = members.optional_text("expires_at")?.flatten();
    let expires_at = expires_at.as_deref().map(expiry).transpose()?;
    let scopes = members.texts("scopes")?.map(|names| scopes(&names));
    let scopes = scopes.transpose()?.unwrap_or_default();
    members.finish(MEMBERS)?;
    Ok(NewPersonalToken {
        name,
        expires_at,
        scopes,
    })
}

/// The scopes in the member `scopes`. A list that is empty or has only scopes of OpenID Connect is
/// refused. Such a list does not restrict the token, so the token would have all rights of the
/// user.
fn scopes(names: &[String]) -> Result<Scopes, ApiError> {
    rest::each("scopes", names, |name| {
        Scopes::parse(name).map_err(|_| "expected one of read, write, methods, sql and admin")
    })?;
    let scopes = Scopes::parse(&names.join(" ")).map_err(ApiError::from_accounts)?;
    if !scopes.narrows() {
        let wrong = "`scopes`: expected one scope or more of read, write, methods, sql and admin; \
                     without it, those of your own token";
        return Err(ApiError::input(wrong));
    }
    Ok(scopes)
}

fn expiry(text: &str) -> Result<Timestamp, ApiError> {
    let at: Result<jiff::Timestamp, _> = text.parse();
    let wrong = "`expires_at`: expected a time with a zone, such as 2031-01-31T00:00:00Z";
    let at = at.map_err(|_| ApiError::input(wrong))?;
    Ok(Timestamp::from_millis(at.as_millisecond()))
}
