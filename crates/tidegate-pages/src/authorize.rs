//! `/auth`: the authorization endpoint (RFC 6749, section 4.1).

use http::Response;
use tidegate_identity::Browser;
use tidegate_oauth::{AuthorizationError, AuthorizationRequest, Error, Prompt};

use super::context::{PageContext, form};
use super::form_error::{failure, request_error};
use super::purpose::Purpose;
use super::received::Received;
use super::sign_in::require_sign_in;
use crate::template;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::request_body::IncomingBody;

/// The parameters that are copied to the redirect if a client makes the browser send the request as
/// a `POST` (OpenID Connect Core 1.0, section 3.1.2.1).
const PARAMETERS: [&str; 18] = [
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
    "max_age",
    "login_hint",
    "id_token_hint",
    "database",
    "resource",
    "request",
    "request_uri",
    "registration",
];

/// Handles `GET` and `POST /auth`.
pub async fn authorize<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let received = Received::read(call).await?;
    if let Some(response) = received.redirected_to_get("/auth", &PARAMETERS)? {
        return Ok(response);
    }
    let mut context = PageContext::of(received).await?;
    let issuer = context.app.issuer();
    let request = match issuer.authorization_request(&context.query).await {
        Ok(request) => request,
        Err(AuthorizationError::Redirect(location)) => return Ok(context.redirect(&location)),
        Err(AuthorizationError::Display(error)) => return Err(request_error(error)),
    };
    if request.openid.asks(Prompt::None) {
        return silent(&context, &request).await;
    }
    let (client, here) = (&request.client, context.request_path());
    let query = without_sign_in_parameters(context.raw_query(), &request);
    let next = context.path(&format!("/auth?{query}"));
    let open = client.allow_signup && context.app.allows_sign_up();
    let sign_up = open.then(|| context.path(&format!("/signup/?{query}")));
    let returns_to = Some(&*request.redirect_uri);
    let known = context.browser.clone();
    let again = known.filter(|browser| issuer.needs_sign_in(&request, browser));
    let name = again.as_ref().map(|browser| &*browser.user.key.name);
    let purpose = Purpose {
        client: Some(client),
        database: request.database.as_deref(),
        next: &next,
        again: again.is_some(),
        username: request.openid.login_hint().or(name),
        returns_to,
        sign_up: sign_up.as_deref(),
        ..Purpose::own_page(&here)
    };
    if let Some(response) = require_sign_in(&mut context, &purpose).await? {
        return Ok(response);
    }
    let Some(browser) = context.browser.clone() else {
        return Ok(context.redirect(&here));
    };
    let urls = PageUrls {
        page: &here,
        next: &next,
    };
    grant(&context, &request, &browser, urls).await
}

/// The URLs of the page of an authorization request.
struct PageUrls<'a> {
    /// The URL of the page.
    page: &'a str,
    /// The URL to which the browser goes after a sign-in: the URL of the page without the
    /// parameters that require a sign-in.
    next: &'a str,
}

/// Grants the request of a user who is signed in, or shows a page that asks the user first.
async fn grant(
    context: &PageContext<'_>,
    request: &AuthorizationRequest,
    browser: &Browser,
    urls: PageUrls<'_>,
) -> Result<Response<Body>, ApiError> {
    let (issuer, address) = (context.app.issuer(), context.request.address);
    let (user, returns_to) = (&browser.user, Some(&*request.redirect_uri));
    let token = context.token();
    let form = form(urls.page, &token, None);
    if request.openid.asks(Prompt::SelectAccount) {
        if context.step() == Some("continue") {
            return Ok(context.redirect(urls.next));
        }
        let card = template::select_account(&form, &user.key.name);
        return Ok(context.show("Choose an account", &card, (None, returns_to)));
    }
    let decision = match context.step() {
        Some("decide") => context.field("decision"),
        _ => None,
    };
    let needs_consent = || issuer.needs_consent(request, browser);
    let location = match decision {
        Some("deny") => issuer.deny_code(request, user, address).await,
        Some("allow") => issuer.allow_code(request, browser, address).await,
        _ if context.is_head() || needs_consent().await.map_err(failure)? => {
            let asked = (&*user.key.name, request.scopes);
            let card = template::consent(&form, &request.client, &request.redirect_uri, asked);
            return Ok(context.show("Allow access", &card, (None, returns_to)));
        }
        _ => issuer.grant_code(request, browser).await,
    };
    Ok(context.redirect(&location))
}

/// Handles a request with `prompt=none`, for which no page may be shown (OpenID Connect Core 1.0,
/// section 3.1.2.6). Redirects the browser to the client with a code or an error.
async fn silent(
    context: &PageContext<'_>,
    request: &AuthorizationRequest,
) -> Result<Response<Body>, ApiError> {
    let issuer = context.app.issuer();
    let checked = issuer.check_silent(request, context.browser.as_ref()).await;
    let location = match (checked, &context.browser) {
        // A `HEAD` request changes nothing, so it gets no code.
        (Ok(()), Some(browser)) if !context.is_head() => issuer.grant_code(request, browser).await,
        (Ok(()), _) => issuer.refuse(request, &Error::InteractionRequired),
        (Err(error), _) => issuer.refuse(request, &error),
    };
    Ok(context.redirect(&location))
}

/// Removes `max_age` and `prompt` from the query of an authorization request, but keeps
/// `prompt=consent`. With the removed parameters, the page after the sign-in would require another
/// sign-in. Without the scope `openid`, the parameters have no effect, and the query is returned
/// unchanged.
fn without_sign_in_parameters(query: &str, request: &AuthorizationRequest) -> String {
    if !request.scopes.has("openid") {
        return query.to_owned();
    }
    let names_sign_in = |pair: &&str| {
        let name = pair.split('=').next();
        matches!(name, Some("prompt" | "max_age"))
    };
    let mut kept: Vec<_> = query
        .split('&')
        .filter(|pair| !names_sign_in(pair))
        .collect();
    if request.openid.asks(Prompt::Consent) {
        kept.push("prompt=consent");
    }
    kept.join("&")
}
