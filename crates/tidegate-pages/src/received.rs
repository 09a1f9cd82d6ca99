//! Requests for pages as they were received, before the checks of their cookie and origin.

use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, Response};
use tidegate_identity::RequestContext;
use tidegate_oauth::Parameters;

use super::form_error::{failure, request_error};
use crate::template;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::memory::Holder;
use tidegate_http::negotiate::ContentType;
use tidegate_http::request_body::IncomingBody;
use tidegate_http::{forwarded, percent, request_body};

/// A request for a page, whose head and form have been read.
pub(super) struct Received<'a> {
    pub(super) app: &'a App,
    pub(super) head: &'a Parts,
    pub(super) request: RequestContext,
    /// The form of a `POST` request.
    pub(super) form: Option<Parameters>,
}

impl<'a> Received<'a> {
    /// Reads a request, with its form.
    pub(super) async fn read<B: IncomingBody>(call: Call<'a, B>) -> Result<Self, ApiError> {
        let Call {
            app,
            peer,
            head,
            body,
            body_limit,
            ..
        } = call;
        let trusted = app.trusted_proxies();
        if !app.insecure_http() && !forwarded::is_private(peer, &head.headers, trusted) {
            return Err(ApiError::input("this page is available over HTTPS only"));
        }
        let agent = head
            .headers
            .get(USER_AGENT)
            .map(http::HeaderValue::as_bytes);
        let request = RequestContext {
            address: Some(forwarded::client_address(peer, &head.headers, trusted)),
            agent: String::from_utf8_lossy(agent.unwrap_or_default()).into_owned(),
        };
        let form = if head.method == Method::POST {
            Some(read_form(app, head, body, body_limit).await?)
        } else {
            None
        };
        Ok(Self {
            app,
            head,
            request,
            form,
        })
    }

    /// Returns the response to a POST request that a client made the browser send, as OpenID
    /// Connect allows: a redirect to a GET of `path` with the parameters in `names`. Returns `None`
    /// for other requests, such as forms of the pages, which have a CSRF token.
    ///
    /// Browsers send no cookie with a form that another site posts, but they send the cookie when
    /// they follow the redirect. The redirected request may do only what a link on another site may
    /// do.
    pub(super) fn redirected_to_get(
        &self,
        path: &str,
        names: &[&'static str],
    ) -> Result<Option<Response<Body>>, ApiError> {
        let Some(form) = &self.form else {
            return Ok(None);
        };
        let value = |name| form.text(name).ok().flatten();
        if value("form_token").is_some() || self.head.uri.query().is_some() {
            return Ok(None);
        }
        form.reject_duplicates().map_err(request_error)?;
        let pairs = names.iter().filter_map(|name| Some((name, value(name)?)));
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={}", percent::encode(value)))
            .collect();
        let base = tidegate_http::base_path::base_of(self.app.issuer().address());
        let location = format!("{base}{path}?{}", pairs.join("&"));
        Ok((!pairs.is_empty()).then(|| template::redirect(&location)))
    }
}

async fn read_form<B: IncomingBody>(
    app: &App,
    head: &Parts,
    body: B,
    body_limit: u64,
) -> Result<Parameters, ApiError> {
    if ContentType::of(&head.headers) != Some(ContentType::Form) {
        return Err(ApiError::unsupported_media_type(
            "the body must be application/x-www-form-urlencoded",
        ));
    }
    let mut limits = *app.limits();
    limits.request_body = body_limit;
    let reservation = app.memory().reservation(Holder::Anonymous(None));
    let body = request_body::read(body, &head.headers, &limits, reservation).await?;
    Parameters::from_form(&body.bytes).map_err(failure)
}
