//! The whole surface on one screen.

mod methods;

use std::borrow::Cow;

use http::Method;

use crate::percent;
pub(crate) use methods::Methods;

/// Where a request goes. What a path names is percent-decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route<'p> {
    /// `POST /api/v4/sql`
    Sql,
    /// `POST /api/v4/sql/database/{database}`
    SqlDatabase(Cow<'p, str>),
    /// `GET /api/v4/sql/schema[?schema=name]`
    SqlSchemas,
    /// `GET /api/v4/sql/schema/{schema}`
    SqlSchema(Cow<'p, str>),
    /// `GET`, `POST /api/v4/clients`
    Clients,
    /// `GET`, `PATCH`, `DELETE /api/v4/clients/{ids}`
    ClientsNamed(Cow<'p, str>),
    /// `GET`, `POST /api/v4/users`
    Users,
    /// `GET`, `PATCH`, `DELETE /api/v4/users/{names}`
    UsersNamed(Cow<'p, str>),
    /// `POST /api/v4/users/{name}/token`
    UserToken(Cow<'p, str>),
    /// `GET /api/v4/sessions`
    Sessions,
    /// `DELETE /api/v4/sessions/{ids}`
    SessionsNamed(Cow<'p, str>),
    /// `GET`, `PATCH /api/v4/schemas/{schema}/tables/{table}/privileges`
    Privileges(Cow<'p, str>, Cow<'p, str>),
    /// `GET /api/v4/activity`
    Activity,
    /// `GET /api/v4/audit`
    Audit,
    /// `GET`, `PATCH /api/v4/tenant`
    Tenant,
    /// `GET`, `POST /api/v4/methods`
    Methods,
    /// `GET`, `PATCH`, `DELETE /api/v4/methods/{names}`
    MethodsNamed(Cow<'p, str>),
    /// `POST /api/v4/call`
    Call,
    /// `POST /api/v4/rpc`
    Rpc,
    /// `POST /api/v4/call/dry`
    DryRun,
    /// `GET /api/v4/interfaces`
    Interfaces,
    /// `GET /api/v4/openrpc.json`
    OpenRpc,
    /// `POST /api/v4/oauth`
    Token,
    /// `POST /api/v4/oauth/guest`
    Guest,
    /// `POST /api/v4/oauth/device`
    DeviceAuthorization,
    /// `POST /api/v4/oauth/revoke`
    Revoke,
    /// `POST /api/v4/oauth/introspect`
    Introspect,
    /// `GET /.well-known/oauth-authorization-server`
    Metadata,
    /// `GET /.well-known/jwks.json`
    Keys,
    /// `GET /api/v4/openapi.json`
    OpenApi,
    /// `GET`, `POST /auth`
    Authorize,
    /// `GET`, `POST /device`
    Device,
    /// `GET`, `POST /signup`
    SignUp,
    /// `GET /signin/{provider}`
    SignInWith(Cow<'p, str>),
    /// `GET /signin/{provider}/callback`
    SignedInWith(Cow<'p, str>),
    /// `GET`, `POST /signup/confirm`
    SignUpConfirm,
    /// `GET`, `POST /reset`
    Reset,
    /// `GET`, `POST /signout`
    SignOut,
    /// `GET`, `POST /account`
    Account,
    /// `GET /assets/tidegate.css`
    Stylesheet,
    /// `GET /favicon.ico`
    Icon,
    /// `GET /assets/graphiql/{name}`
    GraphiqlAsset(Cow<'p, str>),
    /// `GET`, `POST /api/graphql/schema/{schema}`
    GraphQl(Cow<'p, str>),
    /// `GET /api/graphql/schema/{schema}/sdl`
    GraphQlSdl(Cow<'p, str>),
    /// `GET /`: the console for browsers, and the WebSocket
    Root,
    /// `GET /console`
    Console,
    /// `GET /console/sign-in`
    ConsoleSignIn,
    /// `GET /console/{name}`
    ConsoleFile(Cow<'p, str>),
    /// The WebSocket: `GET /api/v4/events`
    Events,
    /// `GET /api/v4/events/stream`
    EventStream,
    /// `GET /ping`
    Ping,
    /// `GET /healthz`
    Health,
    /// `GET /readyz`
    Readiness,
    /// `GET /metrics`
    Metrics,
}

/// Why a request goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// There is no such path.
    NotFound,
    /// The path is there and takes other methods: the value of `Allow`.
    MethodNotAllowed(&'static str),
}

/// A route without what its path names: the label in metrics and logs, the path in the OpenAPI
/// document.
pub(crate) const PATHS: [(&str, Methods); 54] = [
    ("/api/v4/sql", Methods::Post),
    ("/api/v4/sql/database/{database}", Methods::Post),
    ("/api/v4/sql/schema", Methods::Get),
    ("/api/v4/sql/schema/{schema}", Methods::Get),
    ("/api/v4/oauth", Methods::Post),
    ("/api/v4/oauth/guest", Methods::Post),
    ("/api/v4/oauth/revoke", Methods::Post),
    ("/api/v4/oauth/introspect", Methods::Post),
    ("/.well-known/oauth-authorization-server", Methods::Get),
    ("/.well-known/jwks.json", Methods::Get),
    ("/api/v4/openapi.json", Methods::Get),
    ("/healthz", Methods::Get),
    ("/readyz", Methods::Get),
    ("/metrics", Methods::Get),
    ("/api/v4/methods", Methods::Collection),
    ("/api/v4/methods/{names}", Methods::Members),
    ("/api/v4/call", Methods::Post),
    ("/api/v4/rpc", Methods::Post),
    ("/api/v4/call/dry", Methods::Post),
    ("/api/v4/interfaces", Methods::Get),
    ("/api/v4/openrpc.json", Methods::Get),
    ("/api/v4/clients", Methods::Collection),
    ("/api/v4/clients/{ids}", Methods::Members),
    ("/api/v4/users", Methods::Collection),
    ("/api/v4/users/{names}", Methods::Members),
    (
        "/api/v4/schemas/{schema}/tables/{table}/privileges",
        Methods::Property,
    ),
    ("/api/v4/audit", Methods::Get),
    ("/api/v4/oauth/device", Methods::Post),
    ("/auth", Methods::Page),
    ("/device", Methods::Page),
    ("/signup", Methods::Page),
    ("/signout", Methods::Page),
    ("/account", Methods::Page),
    ("/assets/tidegate.css", Methods::Get),
    ("/signup/confirm", Methods::Page),
    ("/reset", Methods::Page),
    ("/api/graphql/schema/{schema}", Methods::Collection),
    ("/api/graphql/schema/{schema}/sdl", Methods::Get),
    ("/signin/{provider}", Methods::Get),
    ("/signin/{provider}/callback", Methods::Get),
    ("/api/v4/events", Methods::Get),
    ("/api/v4/events/stream", Methods::Get),
    ("/assets/graphiql/{name}", Methods::Get),
    ("/favicon.ico", Methods::Get),
    ("/ping", Methods::Get),
    ("/api/v4/tenant", Methods::Property),
    ("/", Methods::Get),
    ("/console", Methods::Get),
    ("/console/{name}", Methods::Get),
    ("/console/sign-in", Methods::Get),
    ("/api/v4/users/{name}/token", Methods::Post),
    ("/api/v4/sessions", Methods::Get),
    ("/api/v4/sessions/{ids}", Methods::Delete),
    ("/api/v4/activity", Methods::Get),
];

impl<'p> Route<'p> {
    /// Finds the route of a request; a trailing slash of the path means nothing.
    pub(crate) fn parse(method: &Method, path: &'p str) -> Result<Self, Miss> {
        let route = Self::of_path(path).ok_or(Miss::NotFound)?;
        let methods = route.methods();
        if methods.include(method) {
            Ok(route)
        } else {
            Err(Miss::MethodNotAllowed(methods.allow()))
        }
    }

    fn of_path(path: &'p str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        Some(match path {
            "/api/v4/sql" => Self::Sql,
            "/api/v4/sql/schema" => Self::SqlSchemas,
            "/api/v4/clients" => Self::Clients,
            "/api/v4/users" => Self::Users,
            "/api/v4/activity" => Self::Activity,
            "/api/v4/audit" => Self::Audit,
            "/api/v4/methods" => Self::Methods,
            "/api/v4/call" => Self::Call,
            "/api/v4/rpc" => Self::Rpc,
            "/api/v4/call/dry" => Self::DryRun,
            "/api/v4/interfaces" => Self::Interfaces,
            "/api/v4/openrpc.json" => Self::OpenRpc,
            "/api/v4/oauth" => Self::Token,
            "/api/v4/oauth/guest" => Self::Guest,
            "/api/v4/oauth/device" => Self::DeviceAuthorization,
            "/auth" => Self::Authorize,
            "/device" => Self::Device,
            "/signup" => Self::SignUp,
            "/signup/confirm" => Self::SignUpConfirm,
            "/reset" => Self::Reset,
            "/signout" => Self::SignOut,
            "/account" => Self::Account,
            "/assets/tidegate.css" => Self::Stylesheet,
            "/favicon.ico" => Self::Icon,
            "/api/v4/oauth/revoke" => Self::Revoke,
            "/api/v4/oauth/introspect" => Self::Introspect,
            "/.well-known/oauth-authorization-server" => Self::Metadata,
            "/.well-known/jwks.json" => Self::Keys,
            "/api/v4/openapi.json" => Self::OpenApi,
            "" => Self::Root,
            "/console" => Self::Console,
            "/console/sign-in" => Self::ConsoleSignIn,
            "/api/v4/sessions" => Self::Sessions,
            "/api/v4/events" => Self::Events,
            "/api/v4/events/stream" => Self::EventStream,
            "/ping" => Self::Ping,
            "/api/v4/tenant" => Self::Tenant,
            "/healthz" => Self::Health,
            "/readyz" => Self::Readiness,
            "/metrics" => Self::Metrics,
            _ => return Self::with_name(path),
        })
    }

    fn with_name(path: &'p str) -> Option<Self> {
        if let Some(of_table) = path.strip_prefix("/api/v4/schemas/") {
            return Self::of_table(of_table);
        }
        if let Some(name) = path.strip_prefix("/api/graphql/schema/") {
            return Self::graphql(name);
        }
        if let Some(user) = path.strip_prefix("/api/v4/users/")
            && let Some(name) = user.strip_suffix("/token")
            && !name.contains('/')
        {
            return Some(Self::UserToken(named(name)?));
        }
        if let Some(provider) = path.strip_prefix("/signin/") {
            return Self::of_provider(provider);
        }
        let (folder, name) = path.rsplit_once('/')?;
        let name = named(name)?;
        match folder {
            "/api/v4/sql/database" => Some(Self::SqlDatabase(name)),
            "/api/v4/sql/schema" => Some(Self::SqlSchema(name)),
            "/api/v4/clients" => Some(Self::ClientsNamed(name)),
            "/api/v4/users" => Some(Self::UsersNamed(name)),
            "/api/v4/methods" => Some(Self::MethodsNamed(name)),
            "/api/v4/sessions" => Some(Self::SessionsNamed(name)),
            "/console" => Some(Self::ConsoleFile(name)),
            "/assets/graphiql" => Some(Self::GraphiqlAsset(name)),
            _ => None,
        }
    }

    fn of_provider(path: &'p str) -> Option<Self> {
        let name = |part| percent::decode(part).filter(|name| !name.is_empty());
        match path.split_once('/') {
            None => Some(Self::SignInWith(name(path)?)),
            Some((provider, "callback")) => Some(Self::SignedInWith(name(provider)?)),
            Some(_) => None,
        }
    }

    fn of_table(path: &'p str) -> Option<Self> {
        let mut parts = path.split('/');
        let schema = parts.next()?;
        let ("tables", table) = (parts.next()?, parts.next()?) else {
            return None;
        };
        let ("privileges", None) = (parts.next()?, parts.next()) else {
            return None;
        };
        let name = |part| percent::decode(part).filter(|name| !name.is_empty());
        Some(Self::Privileges(name(schema)?, name(table)?))
    }

    fn graphql(rest: &'p str) -> Option<Self> {
        let (name, route): (_, fn(Cow<'p, str>) -> Self) = match rest.split_once('/') {
            None => (rest, Self::GraphQl),
            Some((name, "sdl")) => (name, Self::GraphQlSdl),
            Some(_) => return None,
        };
        let name = percent::decode(name).filter(|name| !name.is_empty())?;
        Some(route(name))
    }

    /// The route's place in [`PATHS`].
    pub(crate) const fn index(&self) -> usize {
        match self {
            Self::Sql => 0,
            Self::SqlDatabase(_) => 1,
            Self::SqlSchemas => 2,
            Self::SqlSchema(_) => 3,
            Self::Token => 4,
            Self::Guest => 5,
            Self::Revoke => 6,
            Self::Introspect => 7,
            Self::Metadata => 8,
            Self::Keys => 9,
            Self::OpenApi => 10,
            Self::Health => 11,
            Self::Readiness => 12,
            Self::Metrics => 13,
            Self::Methods => 14,
            Self::MethodsNamed(_) => 15,
            Self::Call => 16,
            Self::Rpc => 17,
            Self::DryRun => 18,
            Self::Interfaces => 19,
            Self::OpenRpc => 20,
            Self::Clients => 21,
            Self::ClientsNamed(_) => 22,
            Self::Users => 23,
            Self::UsersNamed(_) => 24,
            Self::Privileges(..) => 25,
            Self::Audit => 26,
            Self::DeviceAuthorization => 27,
            Self::Authorize => 28,
            Self::Device => 29,
            Self::SignUp => 30,
            Self::SignOut => 31,
            Self::Account => 32,
            Self::Stylesheet => 33,
            Self::SignUpConfirm => 34,
            Self::Reset => 35,
            Self::GraphQl(_) => 36,
            Self::GraphQlSdl(_) => 37,
            Self::SignInWith(_) => 38,
            Self::SignedInWith(_) => 39,
            Self::Events => 40,
            Self::EventStream => 41,
            Self::GraphiqlAsset(_) => 42,
            Self::Icon => 43,
            Self::Ping => 44,
            Self::Tenant => 45,
            Self::Root => 46,
            Self::Console => 47,
            Self::ConsoleFile(_) => 48,
            Self::ConsoleSignIn => 49,
            Self::UserToken(_) => 50,
            Self::Sessions => 51,
            Self::SessionsNamed(_) => 52,
            Self::Activity => 53,
        }
    }

    /// The methods of the route's path.
    pub(crate) const fn methods(&self) -> Methods {
        PATHS[self.index()].1
    }

    /// Whether errors have the shape of RFC 6749, section 5.2.
    pub(crate) const fn speaks_oauth(&self) -> bool {
        matches!(
            self,
            Self::Token | Self::Guest | Self::DeviceAuthorization | Self::Revoke | Self::Introspect
        )
    }

    /// Whether people see it: errors are pages, and no other origin may read it.
    pub(crate) const fn is_page(&self) -> bool {
        matches!(
            self,
            Self::Authorize
                | Self::Device
                | Self::SignUp
                | Self::SignUpConfirm
                | Self::Reset
                | Self::SignInWith(_)
                | Self::SignedInWith(_)
                | Self::SignOut
                | Self::Account
                | Self::ConsoleSignIn
        )
    }

    /// Whether a listener for operators serves it.
    pub(crate) const fn is_for_operators(&self) -> bool {
        matches!(self, Self::Health | Self::Readiness | Self::Metrics)
    }

    /// Whether a path is that of a page.
    pub(crate) fn is_path_of_page(path: &'p str) -> bool {
        Self::of_path(path).is_some_and(|route| route.is_page())
    }
}

/// A name in a path; `None` for an empty one.
fn named(part: &str) -> Option<Cow<'_, str>> {
    percent::decode(part).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_leads_to_its_own_entry_of_the_table() {
        for (index, (path, methods)) in PATHS.iter().enumerate() {
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
            Err(Miss::MethodNotAllowed("POST, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::POST, "/healthz"),
            Err(Miss::MethodNotAllowed("GET, HEAD, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::PATCH, "/api/v4/methods"),
            Err(Miss::MethodNotAllowed("GET, HEAD, POST, OPTIONS"))
        );
        assert_eq!(
            Route::parse(&Method::POST, "/api/v4/methods/a"),
            Err(Miss::MethodNotAllowed("GET, HEAD, PATCH, DELETE, OPTIONS"))
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
                Err(Miss::NotFound),
                "{path}"
            );
        }
    }
}
