//! Error pages.

use http::header::{ALLOW, RETRY_AFTER};
use http::{Response, StatusCode};
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, Protocol};

use crate::template::{self, FailureLinks};

/// The service whose pages an error page links to.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The issuer's URL. All paths of the service begin with the path of this URL.
    pub issuer: &'a str,
    /// Whether the service has the console and the documentation.
    pub has_console: bool,
}

/// The error page for a failed request of a page. For an unknown path, the page has links to all
/// parts of the service.
pub fn failure(failure: &ApiError, site: Site<'_>, context: &Context<'_>) -> Response<Body> {
    failure.log(context);
    let base = tidegate_http::base_path::base_of(site.issuer);
    let title = match failure.status.as_u16() {
        404 => "Not found",
        400 | 413 | 415 => "Invalid request",
        403 => "Not allowed",
        429 | 503 => "Try again soon",
        _ => "Something went wrong",
    };
    let mut text = failure.message.to_string();
    if let Some(first) = text.get(..1) {
        let first = first.to_uppercase();
        text.replace_range(..1, &first);
    }
    if !text.ends_with('.') {
        text.push('.');
    }
    let links = match failure.status {
        StatusCode::NOT_FOUND => FailureLinks::Everything,
        StatusCode::BAD_REQUEST if site.has_console => FailureLinks::Reference,
        _ => FailureLinks::Nothing,
    };
    let links = template::failure_links(links, base, site.has_console);
    let card = template::failure((title, &text), &links, context.request_id);
    let markup = template::layout(base, title, &card);
    let mut response = template::response(failure.status, markup, None);
    // The errors and headers are copied from a plain response to the same failure, which has an
    // empty body.
    let mut plain = failure.response(Vec::new(), Protocol::Page);
    response.body_mut().subject.errors = plain.body_mut().subject.errors.take();
    for name in [RETRY_AFTER, ALLOW] {
        if let Some(value) = plain.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}
