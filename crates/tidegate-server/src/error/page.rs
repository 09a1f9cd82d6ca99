//! Failures as people see them.

use http::header::RETRY_AFTER;
use http::{Response, StatusCode};

use super::{Context, Failure, Protocol};
use crate::body::Body;
use crate::page;

impl Failure {
    /// The answer of a page; `issuer` is the address of ours that stands before its path.
    pub(crate) fn into_page(self, issuer: &str, context: &Context<'_>) -> Response<Body> {
        self.log(context);
        let base = page::base_of(issuer);
        let title = match self.status.as_u16() {
            404 => "Not found",
            400 | 413 | 415 => "This does not work",
            403 => "Not allowed",
            429 | 503 => "Try again soon",
            _ => "Something went wrong",
        };
        let mut text = self.message.to_string();
        if let Some(first) = text.get(..1) {
            let first = first.to_uppercase();
            text.replace_range(..1, &first);
        }
        if !text.ends_with('.') {
            text.push('.');
        }
        let account = format!("{base}/account");
        let back = (self.status == StatusCode::NOT_FOUND).then_some((&*account, "Your account"));
        let card = page::failure((title, &text), back, context.request_id);
        let markup = page::layout(base, title, &card);
        let mut response = page::answer(self.status, markup, None);
        // Whatever the failure asks for besides its body.
        let mut plain = self.answer(Vec::new(), Protocol::Page);
        response.body_mut().subject.errors = plain.body_mut().subject.errors.take();
        for name in [RETRY_AFTER, http::header::ALLOW] {
            if let Some(value) = plain.headers().get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        response
    }
}
