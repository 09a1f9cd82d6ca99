//! The log line, the counters and the span of a request.

use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request};

use crate::route::Route;
use tidegate_http::activity::Finished;
use tidegate_http::app::App;
use tidegate_http::body::Watcher;
use tidegate_http::report::{REQUEST_ID, Subject};
use tidegate_http::trace::{Span, SpanContext};

/// A macro, because the level of an event must be a constant.
macro_rules! access {
    ($self:ident, $level:ident, $took:ident) => {
        tracing::$level!(
            target: "tidegate::access",
            request_id = $self.request_id.as_ref().and_then(|id| id.to_str().ok()),
            method = $self.method.as_str(),
            route = $self.subject.path(),
            status = $self.status,
            microseconds = u64::try_from($took.as_micros()).unwrap_or(u64::MAX),
            complete = $self.complete,
            database = $self.subject.login.as_ref().map(|login| login.database.as_str()),
            role = $self.subject.login.as_ref().map(|login| login.role.as_str()),
            error = $self.subject.errors.as_ref().and_then(|errors| errors.code()),
            errors = $self.subject.errors.as_ref().map(|errors| errors.total()),
            sqlstate = $self.subject.errors.as_ref().and_then(|errors| errors.sqlstate.as_deref()),
            table = $self.subject.errors.as_ref().and_then(|errors| errors.table.as_deref()),
            constraint = $self.subject.errors.as_ref().and_then(|errors| errors.constraint.as_deref()),
            "request"
        )
    };
}

/// Observes a request from its head to the end of its response. It is recorded on drop.
pub(crate) struct Observation {
    app: App,
    method: Method,
    request_id: Option<HeaderValue>,
    started: Instant,
    subject: Subject,
    status: u16,
    complete: bool,
    /// Boxed, because most services collect no spans.
    context: Option<Box<SpanContext>>,
}

/// The status of a request whose client disconnected before the response, as other servers log it.
const PEER_LEFT: u16 = 499;

impl Observation {
    pub(crate) fn begin<B>(app: App, request: &Request<B>) -> Self {
        app.metrics().begin();
        Self {
            context: app.span_context(request.headers()).map(Box::new),
            method: request.method().clone(),
            request_id: request.headers().get(REQUEST_ID).cloned(),
            app,
            started: Instant::now(),
            // Known from the start, so that such a request has a route too.
            subject: Subject {
                route: Route::parse(request.method(), request.uri().path())
                    .ok()
                    .map(|route| route.label()),
                login: None,
                errors: None,
                body: None,
            },
            status: PEER_LEFT,
            complete: false,
        }
    }

    /// The head of the response is ready.
    pub(crate) fn responded(&mut self, status: u16, subject: Subject) {
        self.status = status;
        self.subject.login = subject.login;
        self.subject.errors = subject.errors;
        self.subject.body = subject.body;
    }

    fn span(&mut self) {
        let (Some(context), Some(sink)) = (self.context.take(), self.app.spans()) else {
            return;
        };
        let id = self.request_id.as_ref().and_then(|id| id.to_str().ok());
        sink.record(Span {
            context: *context,
            started: self.started,
            ended: Instant::now(),
            method: self.method.clone(),
            route: self.subject.path(),
            status: self.status,
            complete: self.complete,
            request_id: id.unwrap_or_default().to_owned(),
            login: self.subject.login.clone(),
        });
    }
}

impl Observation {
    /// Counts the request for its tenant, except one for the counts.
    fn record_activity(&self, took: Duration) {
        let (Some(login), Some(route)) = (&self.subject.login, self.subject.route) else {
            return;
        };
        // A page that shows the activity asks again and again, and would count itself.
        if route.path == Route::Activity.label().path {
            return;
        }
        let errors = self.subject.errors.as_ref();
        let finished = Finished {
            at: self.app.issuer().now().millis(),
            took,
            status: self.status,
            route: route.path,
            role: login.role.as_str(),
            error: errors.and_then(|errors| errors.code()),
            sqlstate: errors.and_then(|errors| errors.sqlstate.as_deref()),
            body: self.subject.body.as_ref(),
        };
        self.app.activity().record(&login.database, &finished);
    }
}

impl Watcher for Observation {
    fn complete(&mut self) {
        self.complete = true;
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        let route = self.subject.route.map(|route| route.index);
        self.app
            .metrics()
            .end(route, self.status, took, self.complete);
        if let Some(errors) = &self.subject.errors {
            self.app.metrics().errors(errors);
        }
        self.record_activity(took);
        self.span();
        // A log line costs as much as a small request, so successful requests are logged only at
        // level debug.
        match self.status {
            400.. => access!(self, info, took),
            _ if !self.complete || self.subject.errors.is_some() => access!(self, info, took),
            _ => access!(self, debug, took),
        }
    }
}
