//! Counts requests for the activity that the owners of tenants see. Requests whose client
//! disconnected count too.

use std::thread;
use std::time::{Duration, Instant};

use tidegate_http::activity::{CLIENT_LEFT, Finished};
use tidegate_http::app::App;
use tidegate_http::report::Subject;

use crate::route::Route;

/// The subject of a request without a response yet. A request that is dropped in this state is
/// counted with the status [`CLIENT_LEFT`].
pub(crate) struct PendingRequest<'a> {
    app: &'a App,
    started: Instant,
    pub(crate) subject: Subject,
}

impl<'a> PendingRequest<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self {
            app,
            started: Instant::now(),
            subject: Subject::default(),
        }
    }

    /// The subject of a request that has a response now.
    pub(crate) fn answered(mut self) -> Subject {
        std::mem::take(&mut self.subject)
    }
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        // A request whose handler panics is also dropped here. Its response has the status 500.
        let status = if thread::panicking() {
            500
        } else {
            CLIENT_LEFT
        };
        count(self.app, &self.subject, status, self.started.elapsed());
    }
}

/// Counts a request in the activity of its tenant. Requests that read the activity are not counted.
pub(crate) fn count(app: &App, subject: &Subject, status: u16, took: Duration) {
    let (Some(login), Some(route)) = (&subject.login, subject.route) else {
        return;
    };
    // A page that shows the activity requests the activity periodically. These requests are not
    // counted.
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
