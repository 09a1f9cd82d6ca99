//! Calls the handler of a request's route. Counts requests in the activity of their tenant, also
//! requests whose client disconnected.

use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use tidegate_http::activity::{CLIENT_LEFT, Finished};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded::Peer;
use tidegate_http::replica_reads;
use tidegate_http::report::{Context, Subject};
use tidegate_http::request_body::BodyError;
use tidegate_pages as pages;

use crate::endpoint::OperatorListener;
use crate::endpoint::graphql::{self, Media};
use crate::route::{self, Access, Route, RouteError, Surface};

/// Serves a request with the handler of its route; errors have the form of the route.
pub(crate) async fn answer<B>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let (head, body) = request.into_parts();
    let mut pending_request = PendingRequest::new(app);
    let subject = &mut pending_request.subject;
    let for_operators = head.extensions.get::<OperatorListener>().is_some();
    let outcome = match route {
        Ok(route) if for_operators && route.properties().access != Access::Operator => {
            Err(no_such_path())
        }
        Ok(route) => {
            subject.route = Some(route.label());
            let call = Call {
                app,
                peer,
                head: &head,
                body,
                subject,
                body_limit: route.properties().body.bytes(app.limits().request_body),
            };
            route::serve(route, call).await
        }
        Err(RouteError::NotFound) => Err(no_such_path()),
        Err(RouteError::MethodNotAllowed(allow)) => Err(ApiError::method_not_allowed(allow)),
    };
    let mut response = outcome.unwrap_or_else(|failure| {
        let origin = Context::new(&head, &pending_request.subject);
        let surface = route.as_ref().map(|route| route.properties().surface);
        match surface {
            Ok(Surface::OAuth) => failure.into_oauth(false, &origin),
            Ok(Surface::Guest) => failure.into_oauth(true, &origin),
            Ok(Surface::Page) => pages::failure(&failure, site(app), &origin),
            // A person who mistypes a URL gets an HTML page.
            Err(RouteError::NotFound) if graphql::wants_page(&head.headers) => {
                pages::failure(&failure, site(app), &origin)
            }
            _ if head.uri.path().starts_with("/api/graphql/") => {
                let media = Media::of(&head.headers).unwrap_or_default();
                failure.into_graphql(media.header(), &origin)
            }
            _ => failure.into_rest(&origin),
        }
    });
    let mut subject = pending_request.answered();
    replica_reads::announce(app, subject.login.as_ref(), response.headers_mut());
    subject.errors = response.body_mut().subject.errors.take();
    response.body_mut().subject = subject;
    response
}

/// The service, for the links of an error page.
fn site(app: &App) -> pages::Site<'_> {
    pages::Site {
        issuer: app.issuer().address(),
        has_console: app.console().is_some(),
    }
}

fn no_such_path() -> ApiError {
    ApiError::not_found("there is no such path")
}

/// The subject of a request without a response yet. A request that is dropped in this state is
/// counted with the status [`CLIENT_LEFT`].
struct PendingRequest<'a> {
    app: &'a App,
    started: Instant,
    subject: Subject,
}

impl<'a> PendingRequest<'a> {
    fn new(app: &'a App) -> Self {
        Self {
            app,
            started: Instant::now(),
            subject: Subject::default(),
        }
    }

    /// The subject of a request that has a response now.
    fn answered(mut self) -> Subject {
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
        count_activity(self.app, &self.subject, status, self.started.elapsed());
    }
}

/// Counts a request in the activity of its tenant, which its owner sees. Requests that read the
/// activity are not counted.
pub(crate) fn count_activity(app: &App, subject: &Subject, status: u16, took: Duration) {
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
