//! The innermost service: finds the route of a request and calls its handler.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded::Peer;
use tidegate_http::report::{Context, Subject};
use tidegate_http::request_body::BodyError;
use tidegate_pages as pages;
use tower::Service;

use crate::endpoint::ForOperators;
use crate::endpoint::graphql::{self, Media};
use crate::route::{self, Access, Miss, Route, Surface};

/// The innermost service.
#[derive(Clone, Debug)]
pub(crate) struct Dispatch {
    app: App,
    peer: Peer,
}

impl Dispatch {
    pub(crate) fn new(app: App, peer: Peer) -> Self {
        Self { app, peer }
    }
}

impl<B> Service<Request<B>> for Dispatch
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { app, peer } = self.clone();
        Box::pin(async move { Ok(answer(&app, peer, request).await) })
    }
}

async fn answer<B>(app: &App, peer: Peer, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let (head, body) = request.into_parts();
    let mut subject = Subject::default();
    let route = Route::parse(&head.method, head.uri.path());
    let for_operators = head.extensions.get::<ForOperators>().is_some();
    let outcome = match &route {
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
                subject: &mut subject,
                body_limit: route.properties().body.bytes(app.limits().request_body),
            };
            route::serve(route, call).await
        }
        Err(Miss::NotFound) => Err(no_such_path()),
        Err(Miss::MethodNotAllowed(allow)) => Err(ApiError::method_not_allowed(allow)),
    };
    let mut response = outcome.unwrap_or_else(|failure| {
        let origin = Context::new(&head, &subject);
        let surface = route.as_ref().map(|route| route.properties().surface);
        match surface {
            Ok(Surface::OAuth) => failure.into_oauth(false, &origin),
            Ok(Surface::Guest) => failure.into_oauth(true, &origin),
            Ok(Surface::Page) => pages::failure(&failure, app.issuer().address(), &origin),
            // A person who mistypes an address gets a page.
            Err(Miss::NotFound) if graphql::wants_page(&head.headers) => {
                pages::failure(&failure, app.issuer().address(), &origin)
            }
            _ if head.uri.path().starts_with("/api/graphql/") => {
                let media = Media::of(&head.headers).unwrap_or_default();
                failure.into_graphql(media.header(), &origin)
            }
            _ => failure.into_rest(&origin),
        }
    });
    subject.errors = response.body_mut().subject.errors.take();
    response.body_mut().subject = subject;
    response
}

fn no_such_path() -> ApiError {
    ApiError::not_found("there is no such path")
}
