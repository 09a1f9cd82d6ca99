//! The log line, the counters and the span of a request. Counts each request in the activity of its
//! tenant, even if the client has disconnected.

use std::thread;
use std::time::{Duration, Instant};

use http::{HeaderValue, Method, Request, Response};

use crate::route::{Route, RouteError};
use tidegate_http::activity::{CLIENT_LEFT, Finished};
use tidegate_http::app::App;
use tidegate_http::body::{Body, Watcher};
use tidegate_http::report::{REQUEST_ID, Subject};
use tidegate_http::trace::{Span, SpanContext};

/// Logs a request. It is a macro, because the level of a `tracing` event must be a constant.
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

/// Observes a request from its head to the end of its response. Dropping the observation records
/// it.
pub(crate) struct Observation {
    app: App,
    method: Method,
    request_id: Option<HeaderValue>,
    started: Instant,
    subject: Subject,
    status: u16,
    complete: bool,
    /// The position of the request in its trace; `None` if the span of the request is not
    /// collected. It is boxed, because most nodes collect no spans.
    context: Option<Box<SpanContext>>,
}

impl Observation {
    pub(crate) fn begin<B>(
        app: App,
        request: &Request<B>,
        route: &Result<Route<'_>, RouteError>,
    ) -> Self {
        app.metrics().begin();
        Self {
            context: app.span_context(request.headers()).map(Box::new),
            method: request.method().clone(),
            request_id: request.headers().get(REQUEST_ID).cloned(),
            app,
            started: Instant::now(),
            // The route is set at the start, so that it is also logged if the client disconnects
            // before the response.
            subject: Subject {
                route: route.as_ref().ok().map(Route::label),
                login: None,
                errors: None,
                body: None,
            },
            status: CLIENT_LEFT,
            complete: false,
        }
    }

    /// Records the head of the response, and moves the observation into the body, so that the
    /// observation ends when the response has been sent.
    pub(crate) fn responded(mut self, response: &mut Response<Body>) {
        let subject = std::mem::take(&mut response.body_mut().subject);
        self.status = response.status().as_u16();
        self.subject.login = subject.login;
        self.subject.errors = subject.errors;
        self.subject.body = subject.body;
        response.body_mut().watch(Box::new(self));
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
        count_activity(&self.app, &self.subject, self.status, took);
        self.span();
        // A log line costs as much as a small request, so successful requests are logged only at
        // the level debug.
        match self.status {
            400.. => access!(self, info, took),
            _ if !self.complete || self.subject.errors.is_some() => access!(self, info, took),
            _ => access!(self, debug, took),
        }
    }
}

/// The subject of a request that has no response yet. A request that is dropped in this state is
/// counted with the status [`CLIENT_LEFT`].
pub(super) struct PendingRequest<'a> {
    app: &'a App,
    started: Instant,
    pub(super) subject: Subject,
}

impl<'a> PendingRequest<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        Self {
            app,
            started: Instant::now(),
            subject: Subject::default(),
        }
    }

    /// Takes the subject, because the request has a response now. The drop then counts nothing,
    /// because an empty subject is left.
    pub(super) fn into_subject(mut self) -> Subject {
        std::mem::take(&mut self.subject)
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        // This value is also dropped when the handler panics. In that case the response has the
        // status 500.
        let status = if thread::panicking() {
            500
        } else {
            CLIENT_LEFT
        };
        count_activity(self.app, &self.subject, status, self.started.elapsed());
    }
}

/// Counts a request in the activity of its tenant. The tenant's owner sees the activity. Requests
/// that read the activity are not counted.
fn count_activity(app: &App, subject: &Subject, status: u16, took: Duration) {
    let (Some(login), Some(route)) = (&subject.login, subject.route) else {
        return;
    };
    // A page that shows the activity requests it periodically, so these requests are not counted.
    if route.path == Route::Activity.label().path {
        return;
    }
    let errors = subject.errors.as_ref();
    let finished = Finished {
        at: app.issuer().now().millis(),
        took,
        status,
        route: route.path,
        role: login.role.as_str(),
        error: errors.and_then(|errors| errors.code()),
        sqlstate: errors.and_then(|errors| errors.sqlstate.as_deref()),
        body: subject.body.as_ref(),
    };
    app.activity().record(&login.database, &finished);
}
