//! From a route to an answer. An endpoint decodes, calls a library, encodes, maps the error.

mod audit;
mod call;
mod clients;
mod console;
mod documents;
mod graphql;
mod impersonation;
mod methods;
mod oauth;
mod openapi;
mod operations;
mod privileges;
mod rest;
mod sessions;
mod sql;
mod tenant;
mod users;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::Failure;
use tidegate_http::forwarded::Peer;
use tidegate_http::report::{Context, Subject};
use tidegate_http::request_body::BodyError;
use tidegate_socket as socket;
use tower::Service;

use crate::route::{Miss, Route};
use graphql::Media;
pub use openapi::openapi;

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

/// Marks a request that came through a listener for operators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForOperators;

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
        Ok(route) if for_operators && !route.is_for_operators() => Err(no_such_path()),
        Ok(route) => {
            subject.route = Some(route.label());
            let call = Call {
                app,
                peer,
                head: &head,
                body,
                subject: &mut subject,
            };
            dispatch(route, call).await
        }
        Err(Miss::NotFound) => Err(no_such_path()),
        Err(Miss::MethodNotAllowed(allow)) => Err(Failure::method_not_allowed(allow)),
    };
    let mut response = outcome.unwrap_or_else(|failure| {
        let origin = Context::new(&head, &subject);
        match &route {
            Ok(route) if route.speaks_oauth() => {
                failure.into_oauth(matches!(route, Route::Guest), &origin)
            }
            Ok(route) if route.is_page() => {
                tidegate_pages::failure(&failure, app.issuer().address(), &origin)
            }
            // What a person typed or followed is answered so that a person can read it.
            Err(Miss::NotFound) if graphql::wants_page(&head.headers) => {
                tidegate_pages::failure(&failure, app.issuer().address(), &origin)
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

fn no_such_path() -> Failure {
    Failure::not_found("there is no such path")
}

async fn dispatch<B>(route: &Route<'_>, call: Call<'_, B>) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    match route {
        Route::Sql => sql::post(call, None).await,
        Route::SqlDatabase(database) => sql::post(call, Some(database)).await,
        Route::SqlSchemas => sql::schemas(call, None).await,
        Route::SqlSchema(schema) => sql::schemas(call, Some(schema)).await,
        Route::Clients => clients::collection(call).await,
        Route::ClientsNamed(ids) => clients::members(call, ids).await,
        Route::Users => users::collection(call).await,
        Route::UsersNamed(names) => users::members(call, names).await,
        Route::UserToken(name) => impersonation::token(call, name).await,
        Route::Sessions => sessions::list(call).await,
        Route::SessionsNamed(ids) => sessions::end(call, ids).await,
        Route::Privileges(schema, table) => privileges::of_table(call, schema, table).await,
        Route::Audit => audit::read(call).await,
        Route::Tenant => tenant::settings(call).await,
        Route::Methods => methods::collection(call).await,
        Route::MethodsNamed(names) => methods::members(call, names).await,
        Route::Call | Route::Rpc => call::call(call).await,
        Route::DryRun => call::dry_run(call).await,
        Route::Interfaces => methods::interfaces(call).await,
        Route::OpenRpc => methods::openrpc(call).await,
        Route::Token => oauth::token(call).await,
        Route::Guest => oauth::guest(call).await,
        Route::DeviceAuthorization => oauth::device(call).await,
        Route::Authorize => tidegate_pages::authorize(call).await,
        Route::SignInWith(provider) => tidegate_pages::begin_provider_sign_in(call, provider).await,
        Route::SignedInWith(provider) => {
            tidegate_pages::complete_provider_sign_in(call, provider).await
        }
        Route::SignUpConfirm => tidegate_pages::confirm(call).await,
        Route::Reset => tidegate_pages::reset(call).await,
        Route::Device => tidegate_pages::device(call).await,
        Route::SignUp => tidegate_pages::sign_up(call).await,
        Route::SignOut => tidegate_pages::sign_out(call).await,
        Route::Account => tidegate_pages::account(call).await,
        Route::Stylesheet => Ok(tidegate_pages::stylesheet()),
        Route::Icon => Ok(tidegate_pages::icon()),
        Route::GraphiqlAsset(name) => graphql::asset(call.app, name),
        Route::Revoke => oauth::revoke(call).await,
        Route::Introspect => oauth::introspect(call).await,
        Route::Metadata => Ok(documents::metadata(call.app)),
        Route::Keys => documents::keys(call.app),
        Route::OpenApi => Ok(openapi::serve()),
        Route::GraphQl(schema) if socket::is_handshake(&call.head.headers) => {
            socket::upgrade(call.app, call.head, Some(schema))
        }
        Route::GraphQl(schema) => graphql::serve(call, schema).await,
        Route::GraphQlSdl(schema) => graphql::sdl(call, schema).await,
        Route::Root => console::root(&call),
        Route::Console => console::page(call.app),
        Route::ConsoleSignIn => tidegate_pages::sign_in_link(call).await,
        Route::ConsoleFile(name) => console::file(call.app, name),
        Route::Events => socket::upgrade(call.app, call.head, None),
        Route::EventStream => socket::event_stream(call).await,
        Route::Ping => Ok(operations::ping()),
        Route::Health => Ok(operations::health()),
        Route::Readiness => Ok(operations::readiness(call.app).await),
        Route::Metrics => operations::metrics(&call),
    }
}
