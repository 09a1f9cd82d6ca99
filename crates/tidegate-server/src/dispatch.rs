//! Calls the handler of a request's route.

use bytes::Bytes;
use http::{Request, Response};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded::Peer;
use tidegate_http::report::Context;
use tidegate_http::request_body::BodyError;
use tidegate_pages as pages;

use crate::endpoint::OperatorListener;
use crate::endpoint::graphql::{self, Media};
use crate::pending_request::PendingRequest;
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
