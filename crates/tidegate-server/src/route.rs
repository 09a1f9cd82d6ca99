//! The table of routes: all paths with their methods, access, errors, body limits and handlers.

mod properties;

use std::borrow::Cow;
use std::pin::Pin;

use http::{Method, Response};
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::metrics;
use tidegate_http::percent;
use tidegate_http::report::RouteLabel;
use tidegate_http::request_body::IncomingBody;
use tidegate_pages as pages;
use tidegate_socket as socket;

use crate::endpoint::{
    activity, audit, call, clients, console, docs, documents, graphql, impersonation, issuers,
    methods as definitions, oauth, openapi, operations, privileges, sessions, sql, tenant, tokens,
    user_info, users,
};
pub(crate) use properties::{Access, BodyLimit, Methods, Properties, Surface};

/// The reason why a request has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteError {
    /// There is no such path.
    NotFound,
    /// The path does not have the method of the request. The field is the value of `Allow`, which
    /// lists the methods that the path has.
    MethodNotAllowed(&'static str),
}

/// Defines the enum of routes, their properties and their handlers.
///
/// A row is `Route: "path", Methods, Access, Surface, Body => handler;`. The handler is an
/// expression that uses the variable `$call`, the request. The paths of the rows of `exact` are
/// constant, and a path may have aliases, separated by `|`. The rows of `named` have names in their
/// paths, and are tried after all rows of `exact`, in order.
macro_rules! routes {
    (
        |$call:ident|
        exact { $(
            $exact:ident: $path:literal $(| $alias:literal)*,
            $methods:ident, $access:ident, $surface:ident, $body:ident => $handler:expr;
        )* }
        named { $(
            $named:ident($($name:ident),+): $template:literal,
            $named_methods:ident, $named_access:ident, $named_surface:ident, $named_body:ident
            => $named_handler:expr;
        )* }
    ) => {
        /// The route of a request. Names are percent-decoded.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Route<'p> {
            $(#[doc = $path] $exact,)*
            $(#[doc = $template] $named($(routes!(@name 'p $name)),+),)*
        }

        /// The properties of the routes.
        pub(crate) const ROUTES: &[Properties] = &[
            $(Properties {
                path: $path,
                methods: Methods::$methods,
                access: Access::$access,
                surface: Surface::$surface,
                body: BodyLimit::$body,
            },)*
            $(Properties {
                path: $template,
                methods: Methods::$named_methods,
                access: Access::$named_access,
                surface: Surface::$named_surface,
                body: BodyLimit::$named_body,
            },)*
        ];

        /// The index of each route in [`ROUTES`].
        enum Index {
            $($exact,)*
            $($named,)*
        }

        impl<'p> Route<'p> {
            /// The route with this path, which has no trailing slash.
            fn of_path(path: &'p str) -> Option<Self> {
                match path {
                    $($path $(| $alias)* => return Some(Self::$exact),)*
                    _ => {}
                }
                $(if path.starts_with(const { prefix($template) })
                    && let Some(mut names) = names($template, path)
                {
                    $(let $name = names.next()?;)+
                    return Some(Self::$named($($name),+));
                })*
                None
            }

            /// The index of the route in [`ROUTES`].
            pub(crate) const fn index(&self) -> usize {
                match self {
                    $(Self::$exact => Index::$exact as usize,)*
                    $(Self::$named(..) => Index::$named as usize,)*
                }
            }
        }

        /// Serves a request. The future of each handler is boxed separately. One future for all
        /// handlers would be as large as the largest of them, and would be copied for each request.
        pub(crate) fn serve<'a, B: IncomingBody + 'static>(
            route: &'a Route<'_>,
            $call: Call<'a, B>,
        ) -> Pin<Box<dyn Future<Output = Result<Response<Body>, ApiError>> + Send + 'a>> {
            match route {
                $(Route::$exact => Box::pin(async move { $handler }),)*
                $(Route::$named($($name),+) => Box::pin(async move { $named_handler }),)*
            }
        }
    };
    (@name $lifetime:lifetime $name:ident) => { Cow<$lifetime, str> };
}

routes! { |call|
    exact {
        Sql: "/api/v4/sql", Post, Caller, Rest, Configured => sql::post(call, None).await;
        SqlSchemas: "/api/v4/sql/schema", Get, Caller, Rest, None => sql::schemas(call, None).await;
        Methods: "/api/v4/methods", Collection, User, Rest, Configured => definitions::collection(call).await;
        Call: "/api/v4/call", Post, Caller, Rest, Configured => call::call(call).await;
        Rpc: "/api/v4/rpc", Post, Caller, Rest, Configured => call::call(call).await;
        DryRun: "/api/v4/call/dry", Post, User, Rest, Configured => call::dry_run(call).await;
        Interfaces: "/api/v4/interfaces", Get, User, Rest, None => definitions::interfaces(call).await;
        OpenRpc: "/api/v4/openrpc.json", Get, User, Rest, None => definitions::openrpc(call).await;
        Clients: "/api/v4/clients", Collection, User, Rest, Configured => clients::collection(call).await;
        Issuers: "/api/v4/issuers", Collection, User, Rest, Configured => issuers::collection(call).await;
        Users: "/api/v4/users", Collection, User, Rest, Configured => users::collection(call).await;
        Sessions: "/api/v4/sessions", Get, User, Rest, None => sessions::list(call).await;
        Tokens: "/api/v4/tokens", Collection, User, Rest, Configured => tokens::collection(call).await;
        Activity: "/api/v4/activity", Get, User, Rest, None => activity::read(call).await;
        Audit: "/api/v4/audit", Get, User, Rest, None => audit::read(call).await;
        Tenant: "/api/v4/tenant", Property, User, Rest, Configured => tenant::settings(call).await;
        Token: "/api/v4/oauth", Post, Client, OAuth, Form => oauth::token(call).await;
        Guest: "/api/v4/oauth/guest", Post, Client, Guest, Form => oauth::guest(call).await;
        DeviceAuthorization: "/api/v4/oauth/device", Post, Client, OAuth, Form => oauth::device(call).await;
        Revoke: "/api/v4/oauth/revoke", Post, Client, OAuth, Form => oauth::revoke(call).await;
        Introspect: "/api/v4/oauth/introspect", Post, Client, OAuth, Form => oauth::introspect(call).await;
        UserInfo: "/api/v4/oauth/userinfo", Collection, User, Rest, Form => user_info::user_info(call).await;
        Metadata: "/.well-known/oauth-authorization-server", Get, Public, Rest, None => Ok(documents::metadata(call.app));
        OpenIdMetadata: "/.well-known/openid-configuration", Get, Public, Rest, None => Ok(documents::openid_metadata(call.app));
        ResourceMetadata: "/.well-known/oauth-protected-resource", Get, Public, Rest, None => Ok(documents::resource_metadata(call.app));
        Keys: "/.well-known/jwks.json", Get, Public, Rest, None => documents::keys(call.app);
        OpenApi: "/api/v4/openapi.json", Get, Public, Rest, None => Ok(openapi::serve());
        Authorize: "/auth", Page, Browser, Page, Form => pages::authorize(call).await;
        EmailSignIn: "/auth/email", Page, Browser, Page, Form => pages::email_sign_in(call).await;
        Device: "/device", Page, Browser, Page, Form => pages::device(call).await;
        SignUp: "/signup", Page, Browser, Page, Form => pages::sign_up(call).await;
        SignUpConfirm: "/signup/confirm", Page, Browser, Page, Form => pages::confirm(call).await;
        Reset: "/reset", Page, Browser, Page, Form => pages::reset(call).await;
        SignOut: "/signout", Page, Browser, Page, Form => pages::sign_out(call).await;
        Account: "/account", Page, Browser, Page, Form => pages::account(call).await;
        Stylesheet: "/assets/tidegate.css", Get, Public, Rest, None => Ok(pages::stylesheet());
        PasskeysScript: "/assets/passkeys.js", Get, Public, Rest, None => Ok(pages::passkeys_script());
        Icon: "/favicon.ico", Get, Public, Rest, None => Ok(pages::icon());
        Root: "/" | "", Get, Public, Rest, None => console::root(&call);
        Console: "/console", Get, Public, Rest, None => console::page(call.app);
        Docs: "/docs", Get, Public, Rest, None => docs::page(&call, "");
        Llms: "/llms.txt", Get, Public, Rest, None => docs::llms(call.app);
        ConsoleSignIn: "/console/sign-in", Get, Browser, Page, None => pages::sign_in_link(call).await;
        Events: "/api/v4/events", Get, Caller, Rest, None => socket::upgrade(call.app, call.head, None);
        EventStream: "/api/v4/events/stream", Get, Caller, Rest, None => socket::event_stream(call).await;
        Ping: "/ping", Get, Public, Rest, None => Ok(operations::ping());
        Health: "/healthz", Get, Operator, Rest, None => Ok(operations::health());
        Readiness: "/readyz", Get, Operator, Rest, None => Ok(operations::readiness(call.app).await);
        Metrics: "/metrics", Get, Operator, Rest, None => operations::metrics(&call, &paths());
    }
    named {
        SqlDatabase(database): "/api/v4/sql/database/{database}", Post, Public, Rest, Configured => sql::post(call, Some(database)).await;
        SqlSchema(schema): "/api/v4/sql/schema/{schema}", Get, Caller, Rest, None => sql::schemas(call, Some(schema)).await;
        MethodsNamed(names): "/api/v4/methods/{names}", Members, User, Rest, Configured => definitions::members(call, names).await;
        ClientsNamed(ids): "/api/v4/clients/{ids}", Members, User, Rest, Configured => clients::members(call, ids).await;
        IssuersNamed(names): "/api/v4/issuers/{names}", Members, User, Rest, Configured => issuers::members(call, names).await;
        UsersNamed(names): "/api/v4/users/{names}", Members, User, Rest, Configured => users::members(call, names).await;
        UserToken(name): "/api/v4/users/{name}/token", Post, User, Rest, Configured => impersonation::token(call, name).await;
        UserCredentials(name): "/api/v4/users/{name}/credentials", Get, User, Rest, None => users::credentials(call, name).await;
        UserCredentialsNamed(name, kinds): "/api/v4/users/{name}/credentials/{kinds}", Delete, User, Rest, None => users::remove_credentials(call, name, kinds).await;
        SessionsNamed(ids): "/api/v4/sessions/{ids}", Delete, User, Rest, None => sessions::end(call, ids).await;
        TokensNamed(ids): "/api/v4/tokens/{ids}", Delete, User, Rest, None => tokens::revoke(call, ids).await;
        ConsoleFile(name): "/console/{name}", Get, Public, Rest, None => console::file(call.app, name);
        DocsPage(name): "/docs/{name}", Get, Public, Rest, None => docs::page(&call, name);
        DocsPageOf(folder, name): "/docs/{folder}/{name}", Get, Public, Rest, None => docs::page_of(&call, folder, name);
        Privileges(schema, table): "/api/v4/schemas/{schema}/tables/{table}/privileges", Property, User, Rest, Configured => privileges::of_table(call, schema, table).await;
        GraphQl(schema): "/api/graphql/schema/{schema}", Collection, Caller, GraphQl, Configured => graphql::serve(call, schema).await;
        GraphQlSdl(schema): "/api/graphql/schema/{schema}/sdl", Get, Caller, GraphQl, None => graphql::sdl(call, schema).await;
        GraphiqlAsset(name): "/assets/graphiql/{name}", Get, Public, Rest, None => graphql::asset(call.app, name);
        SignInWith(provider): "/signin/{provider}", Get, Browser, Page, None => pages::begin_provider_sign_in(call, provider).await;
        SignedInWith(provider): "/signin/{provider}/callback", Get, Browser, Page, None => pages::complete_provider_sign_in(call, provider).await;
    }
}

// The metrics have counters for [`metrics::ROUTES`] routes, so the table must not be longer.
const _: () = assert!(ROUTES.len() <= metrics::ROUTES);

/// The paths of all routes, in the order of the table.
fn paths() -> Vec<&'static str> {
    ROUTES.iter().map(|route| route.path).collect()
}

impl<'p> Route<'p> {
    /// Finds the route of a request. A trailing slash of the path is ignored.
    pub(crate) fn parse(method: &Method, path: &'p str) -> Result<Self, RouteError> {
        let route = Self::find(path).ok_or(RouteError::NotFound)?;
        let methods = route.properties().methods;
        if methods.include(method) {
            Ok(route)
        } else {
            Err(RouteError::MethodNotAllowed(methods.allow()))
        }
    }

    fn find(path: &'p str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        // The trailing slash was removed above, so the path of the root is empty here. A path that
        // is still `/` was `//` in the request, which is not a route.
        if path == "/" {
            None
        } else {
            Self::of_path(path)
        }
    }

    /// The properties of the route in the table.
    pub(crate) const fn properties(&self) -> &'static Properties {
        &ROUTES[self.index()]
    }

    /// The label of the route in the log and the metrics.
    pub(crate) const fn label(&self) -> RouteLabel {
        RouteLabel {
            index: self.index(),
            path: self.properties().path,
        }
    }

    /// Whether `path` is the path of an HTML page.
    pub(crate) fn is_path_of_page(path: &'p str) -> bool {
        Self::find(path).is_some_and(|route| route.properties().surface == Surface::Page)
    }
}

/// The part of a template before its first name. It is compared first, because this comparison is
/// cheap and most paths already differ in this part.
const fn prefix(template: &str) -> &str {
    let mut end = 0;
    while end < template.len() && template.as_bytes()[end] != b'{' {
        end += 1;
    }
    template.split_at(end).0
}

/// The segments of `path` where `template` has names, percent-decoded. `None` if the path does not
/// match, or if such a segment is empty or not UTF-8.
fn names<'p>(template: &str, path: &'p str) -> Option<impl Iterator<Item = Cow<'p, str>>> {
    let mut names = [None, None];
    let mut free = names.iter_mut();
    let mut parts = path.split('/');
    for expected in template.split('/') {
        let part = parts.next()?;
        if expected.starts_with('{') {
            let name = percent::decode(part).filter(|name| !name.is_empty())?;
            *free.next()? = Some(name);
        } else if part != expected {
            return None;
        }
    }
    parts.next().is_none().then(|| names.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_to_its_own_entry_of_the_table() {
        for (index, Properties { path, methods, .. }) in ROUTES.iter().enumerate() {
            let method = match methods {
                Methods::Post => Method::POST,
                Methods::Delete => Method::DELETE,
                _ => Method::GET,
            };
            assert_eq!(
                Route::parse(&method, path).unwrap().index(),
                index,
                "{path}"
            );
        }
    }

    #[test]
    fn a_trailing_slash_means_nothing() {
        assert_eq!(Route::parse(&Method::POST, "/api/v4/sql/"), Ok(Route::Sql));
        assert_eq!(
            Route::parse(&Method::GET, "/api/v4/sql/schema/public/"),
            Ok(Route::SqlSchema("public".into()))
        );
    }

    #[test]
    fn a_name_is_percent_decoded_and_may_hold_a_slash_that_is_encoded() {
        assert_eq!(
            Route::parse(&Method::GET, "/api/v4/sql/schema/my%20schema%2Fa"),
            Ok(Route::SqlSchema("my schema/a".into()))
        );
    }

    #[test]
    fn another_method_names_those_that_are_allowed() {
        assert_eq!(
            Route::parse(&Method::DELETE, "/api/v4/sql"),
            Err(RouteError::MethodNotAllowed("POST, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::POST, "/healthz"),
            Err(RouteError::MethodNotAllowed("GET, HEAD, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::PATCH, "/api/v4/methods"),
            Err(RouteError::MethodNotAllowed("GET, HEAD, POST, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::POST, "/api/v4/methods/a"),
            Err(RouteError::MethodNotAllowed(
                "GET, HEAD, PATCH, DELETE, OPTIONS"
            ))
        );
    }

    #[test]
    fn an_encoded_comma_separates_names_like_a_plain_one() {
        for path in ["/api/v4/methods/a,b", "/api/v4/methods/a%2Cb/"] {
            let route = Route::parse(&Method::DELETE, path);
            assert_eq!(route, Ok(Route::MethodsNamed("a,b".into())), "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for path in [
            "//",
            "/api/v4",
            "/api/v4/sql/database",
            "/api/v4/sql/schema/%ff",
            "/api/v4/schemas/public/tables/t",
            "/api/v4/schemas/public/tables//privileges",
            "/api/v4/schemas/public/views/t/privileges",
            "/api/v4/schemas/public/tables/t/privileges/x",
            "/a/b",
        ] {
            assert_eq!(
                Route::parse(&Method::GET, path),
                Err(RouteError::NotFound),
                "{path}"
            );
        }
    }

    #[test]
    fn the_openapi_description_has_the_same_paths_methods_and_access() {
        let description: serde_json::Value = serde_json::from_slice(&crate::openapi()).unwrap();
        let paths = description["paths"].as_object().unwrap();
        assert_eq!(paths.len(), ROUTES.len());
        for route in ROUTES {
            let item = &paths[route.path];
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                let operation = &item[method.to_lowercase()];
                let taken = route.methods.include(&method.parse().unwrap());
                assert_eq!(operation.is_object(), taken, "{method} {}", route.path);
                if !taken {
                    continue;
                }
                let has_body = operation["requestBody"].is_object();
                assert!(!has_body || route.body != BodyLimit::None, "{}", route.path);
                let schemes: Vec<_> = operation["security"].as_array().unwrap().iter().collect();
                let optional = schemes
                    .iter()
                    .any(|scheme| **scheme == serde_json::json!({}));
                let has = |name: &str| schemes.iter().any(|scheme| scheme[name].is_array());
                let described = match route.access {
                    Access::Public | Access::Browser => schemes.is_empty(),
                    Access::Caller => has("bearer") && optional,
                    Access::User => has("bearer") && !optional,
                    Access::Client => has("client"),
                    Access::Operator => schemes.is_empty() || has("metrics"),
                };
                assert!(described, "{method} {}: {:?}", route.path, route.access);
            }
        }
    }
}
