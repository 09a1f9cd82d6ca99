//! The context of a page request: the browser, the parameters, the form, and methods that build
//! responses.

use http::header::{HOST, ORIGIN, RETRY_AFTER, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use maud::Markup;
use tidegate_identity::{Browser, RequestContext, Secret};
use tidegate_oauth::Parameters;

use super::cookie;
use super::form_error::{FormError, failure};
use super::received::Received;
use crate::template::{self, PageForm};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Errors, Protocol};
use tidegate_http::request_body::IncomingBody;

pub(super) struct PageContext<'a> {
    pub(super) app: &'a App,
    head: &'a Parts,
    pub(super) request: RequestContext,
    cookie: Secret,
    /// Whether the cookie is new, so that the response must set it.
    fresh: bool,
    /// The signed-in browser, if any.
    pub(super) browser: Option<Browser>,
    pub(super) query: Parameters,
    form: Parameters,
}

impl<'a> PageContext<'a> {
    /// Reads the cookie, the query and the form. A form without the browser's CSRF token is
    /// refused.
    pub(super) async fn receive<B: IncomingBody>(call: Call<'a, B>) -> Result<Self, ApiError> {
        Self::of(Received::read(call).await?).await
    }

    /// The context of a request that has been read. The errors are those of
    /// [`receive`](Self::receive).
    pub(super) async fn of(received: Received<'a>) -> Result<Self, ApiError> {
        let Received {
            app,
            head,
            request,
            form,
        } = received;
        let known = cookie::read(&head.headers, is_secure(app));
        let identity = app.issuer().identity();
        if let Some(form) = &form {
            check_origin(app, &head.headers)?;
            let token = form.text("form_token").ok().flatten().unwrap_or_default();
            let is_own = |cookie| identity.is_form_token(cookie, token);
            if !known.as_ref().is_some_and(is_own) {
                return Err(ApiError::stale_form());
            }
        }
        let browser = match &known {
            Some(cookie) => identity.browser(cookie).await.map_err(failure)?,
            None => None,
        };
        let fresh = known.is_none();
        let cookie = match known {
            Some(cookie) => cookie,
            None => identity.new_cookie().map_err(failure)?,
        };
        let query = Parameters::from_form(head.uri.query().unwrap_or_default().as_bytes());
        Ok(Self {
            app,
            head,
            request,
            cookie,
            fresh,
            browser,
            query: query
                .map_err(|_| ApiError::input("the parameters in the address are malformed"))?,
            form: form.unwrap_or_default(),
        })
    }

    /// Whether the request is a `HEAD` request, which must not change anything.
    pub(super) fn is_head(&self) -> bool {
        self.head.method == Method::HEAD
    }

    /// The form's field `step`, which names the step that the form belongs to; `None` without a
    /// form.
    pub(super) fn step(&self) -> Option<&str> {
        self.form.text("step").ok().flatten()
    }

    /// A form field; `None` when it is absent, empty or repeated.
    pub(super) fn field(&self, name: &'static str) -> Option<&str> {
        self.form.text(name).ok().flatten()
    }

    /// A query parameter; `None` when it is absent, empty or repeated.
    pub(super) fn parameter(&self, name: &'static str) -> Option<&str> {
        self.query.text(name).ok().flatten()
    }

    pub(super) fn cookie(&self) -> &Secret {
        &self.cookie
    }

    /// The path that the browser sees: `path` after the path of the issuer's URL.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base())
    }

    /// The path of the issuer's URL. All paths of the service begin with it.
    fn base(&self) -> &str {
        tidegate_http::base_path::base_of(self.app.issuer().address())
    }

    /// The path and query of the request's URL as the browser sees them.
    pub(super) fn request_path(&self) -> String {
        let here = self.head.uri.path_and_query();
        self.path(here.map_or("/", http::uri::PathAndQuery::as_str))
    }

    pub(super) fn raw_query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// The CSRF token of this browser's forms.
    pub(super) fn token(&self) -> String {
        self.app.issuer().identity().form_token(&self.cookie)
    }

    /// Switches to a new cookie and its browser session.
    pub(super) async fn switch_cookie(&mut self, cookie: Secret) -> Result<(), ApiError> {
        self.browser = self
            .app
            .issuer()
            .identity()
            .browser(&cookie)
            .await
            .map_err(failure)?;
        self.cookie = cookie;
        self.fresh = true;
        Ok(())
    }

    /// Signs the browser out, and replaces its cookie.
    pub(super) async fn sign_out(&mut self) -> Result<(), ApiError> {
        let issuer = self.app.issuer();
        if let Some(browser) = self.browser.take() {
            issuer
                .identity()
                .sign_out(&browser, &self.request)
                .await
                .map_err(failure)?;
        }
        self.cookie = issuer.identity().new_cookie().map_err(failure)?;
        self.fresh = true;
        Ok(())
    }

    /// A response with a page. `error` determines its status. `returns_to` is the URL to which the
    /// page's forms may finally redirect.
    pub(super) fn show(
        &self,
        title: &str,
        card: &Markup,
        (error, returns_to): (Option<&FormError>, Option<&str>),
    ) -> Response<Body> {
        let status = error.map_or(StatusCode::OK, |refused| refused.status);
        let markup = template::layout(self.base(), title, card);
        let mut response = template::response(status, markup, returns_to);
        if let Some(refused) = error.filter(|refused| refused.status != StatusCode::OK) {
            let errors = Errors::one(Protocol::Page, refused.code);
            response.body_mut().subject.errors = Some(Box::new(errors));
        }
        if let Some(seconds) = error.and_then(|refused| refused.retry_after) {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        self.with_cookie(response)
    }

    pub(super) fn redirect(&self, location: &str) -> Response<Body> {
        self.with_cookie(template::redirect(location))
    }

    fn with_cookie(&self, mut response: Response<Body>) -> Response<Body> {
        if self.fresh {
            let cookie = cookie::write(Some(&self.cookie), is_secure(self.app));
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }
}

/// The attributes of a form that posts to `action`, with the error of the previous attempt.
pub(super) fn form<'f>(
    action: &'f str,
    token: &'f str,
    refused: Option<&'f FormError>,
) -> PageForm<'f> {
    PageForm {
        action,
        token,
        message: refused.map(|refused| &refused.message),
    }
}

/// Whether browsers reach the service by HTTPS. An issuer's URL with `http:` is for development
/// only.
fn is_secure(app: &App) -> bool {
    app.issuer().address().starts_with("https://")
}

/// Refuses a form if `Sec-Fetch-Site` or `Origin` shows that another site posted it. Without these
/// headers, only the CSRF token decides.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text(http::HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(ApiError::stale_form());
    }
    let Some(origin) = text(ORIGIN).filter(|origin| *origin != "null") else {
        return Ok(());
    };
    let address = app.issuer().address();
    let ours = address
        .strip_prefix(origin)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let host = origin.split_once("://").map(|(_, host)| host);
    if ours || (host.is_some() && host == text(HOST)) {
        Ok(())
    } else {
        Err(ApiError::stale_form())
    }
}
