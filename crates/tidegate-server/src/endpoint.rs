//! From a route to an answer. An endpoint decodes, calls a library, encodes, maps the error.

mod activity;
mod audit;
pub(crate) mod call;
mod clients;
mod console;
mod documents;
mod events;
pub(crate) mod graphql;
mod impersonation;
mod methods;
mod oauth;
mod operations;
mod page;
mod privileges;
mod rest;
mod sessions;
pub(crate) mod sql;
mod tenant;
mod users;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use tidegate_sql::Login;
use tower::Service;

pub(crate) use graphql::Media;

use crate::app::App;
use crate::body::Body;
use crate::error::{self, Failure, JSON};
use crate::forwarded::Peer;
use crate::metrics::Subject;
use crate::route::{Miss, PATHS, Route};
use crate::serve::ForOperators;
use crate::socket;
use crate::stack::{BodyError, REQUEST_ID};

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

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { app, peer } = self.clone();
        Box::pin(async move { Ok(answer(&app, peer, request).await) })
    }
}

/// A request on its way to an endpoint.
pub(crate) struct Call<'a, B> {
    pub app: &'a App,
    pub peer: Peer,
    pub head: &'a Parts,
    pub body: B,
    /// What the log learns of the request.
    pub subject: &'a mut Subject,
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
        Ok(route) if for_operators && !route.is_for_operators() => Err(no_such_path()),
        Ok(route) => {
            subject.route = Some(route.index());
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
        let origin = origin(&head, &subject);
        match &route {
            Ok(route) if route.speaks_oauth() => {
                failure.into_oauth(matches!(route, Route::Guest), &origin)
            }
            Ok(route) if route.is_page() => failure.into_page(app.issuer().address(), &origin),
            // What a person typed or followed is answered so that a person can read it.
            Err(Miss::NotFound) if graphql::wants_page(&head.headers) => {
                failure.into_page(app.issuer().address(), &origin)
            }
            _ if head.uri.path().starts_with("/api/graphql/") => {
                failure.into_graphql(Media::of(&head.headers).unwrap_or_default(), &origin)
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
        Route::Activity => activity::read(call),
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
        Route::Authorize => page::authorize(call).await,
        Route::SignInWith(provider) => page::provider_sign_in::begin(call, provider).await,
        Route::SignedInWith(provider) => page::provider_sign_in::complete(call, provider).await,
        Route::SignUpConfirm => page::confirm(call).await,
        Route::Reset => page::reset(call).await,
        Route::Device => page::device(call).await,
        Route::SignUp => page::sign_up(call).await,
        Route::SignOut => page::sign_out(call).await,
        Route::Account => page::account(call).await,
        Route::Stylesheet => Ok(page::stylesheet()),
        Route::Icon => Ok(page::icon()),
        Route::GraphiqlAsset(name) => graphql::asset(call.app, name),
        Route::Revoke => oauth::revoke(call).await,
        Route::Introspect => oauth::introspect(call).await,
        Route::Metadata => Ok(documents::metadata(call.app)),
        Route::Keys => documents::keys(call.app),
        Route::OpenApi => Ok(documents::openapi()),
        Route::GraphQl(schema) if socket::is_asked(&call.head.headers) => {
            socket::upgrade(call.app, call.head, Some(schema))
        }
        Route::GraphQl(schema) => graphql::serve(call, schema).await,
        Route::GraphQlSdl(schema) => graphql::sdl(call, schema).await,
        Route::Root => console::root(&call),
        Route::Console => console::page(call.app),
        Route::ConsoleSignIn => page::sign_in_link(call).await,
        Route::ConsoleFile(name) => console::file(call.app, name),
        Route::Events => socket::upgrade(call.app, call.head, None),
        Route::EventStream => events::stream(call).await,
        Route::Ping => Ok(operations::ping()),
        Route::Health => Ok(operations::health()),
        Route::Readiness => Ok(operations::readiness(call.app).await),
        Route::Metrics => operations::metrics(&call),
    }
}

/// Where a failure happened, for the log.
pub(crate) fn origin<'a>(head: &'a Parts, subject: &'a Subject) -> error::Context<'a> {
    let id = head.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    error::Context {
        request_id: id.unwrap_or_default(),
        route: subject.route.map_or("none", |route| PATHS[route].0),
        database: subject
            .login
            .as_ref()
            .map(|login: &Login| login.database.as_str()),
        role: subject.login.as_ref().map(|login| login.role.as_str()),
    }
}

/// 200 with a JSON body.
pub(crate) fn json(body: impl Into<Bytes>, cache: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}

/// 204.
pub(crate) fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
