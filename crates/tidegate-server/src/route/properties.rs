//! The properties of routes.

use http::Method;

/// The properties of a route: the columns of the table of routes except for the handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// The path of the route. Variable parts are names in braces.
    pub path: &'static str,
    pub methods: Methods,
    pub access: Access,
    pub surface: Surface,
    pub body: BodyLimit,
}

/// The callers that may use a route. The handlers check the access. A test compares the value in
/// the table with the OpenAPI description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// All clients. The path needs no credentials.
    Public,
    /// A caller with a token, or the default user without a token.
    Caller,
    /// A user with a token.
    User,
    /// An OAuth client with its credentials, or a public client.
    Client,
    /// A browser with its cookie.
    Browser,
    /// An operator. Listeners for operators serve the path too.
    Operator,
}

/// The form of a route's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The JSON body of the REST and SQL endpoints.
    Rest,
    /// A body as OAuth defines it (RFC 6749, section 5.2).
    OAuth,
    /// A body as OAuth defines it, with the members of the REST endpoints added.
    Guest,
    /// An HTML page. Pages of other origins may not read it.
    Page,
    /// A GraphQL body, `{"errors":[…]}`.
    GraphQl,
}

/// The largest request body of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    /// The body is not read.
    None,
    /// At most 64 KiB, which is enough for a form.
    Form,
    /// At most the configured limit.
    Configured,
}

impl BodyLimit {
    /// The limit in bytes. `configured` is the configured limit.
    pub(crate) fn bytes(self, configured: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Form => configured.min(64 * 1024),
            Self::Configured => configured,
        }
    }
}

/// The set of methods that a path has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// The path is read-only. `HEAD` is allowed wherever `GET` is.
    Get,
    /// The path is an action.
    Post,
    /// The path names objects that can only be deleted.
    Delete,
    /// The path is a collection, which can be listed and added to.
    Collection,
    /// The path names members of a collection, which can be read, changed and deleted.
    Members,
    /// The path is a page with a form.
    Page,
    /// The path is a property, which can be read and changed.
    Property,
}

impl Methods {
    pub(super) fn include(self, method: &Method) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match self {
            Self::Get => reads,
            Self::Post => *method == Method::POST,
            Self::Delete => *method == Method::DELETE,
            Self::Collection | Self::Page => reads || *method == Method::POST,
            Self::Members => reads || matches!(*method, Method::PATCH | Method::DELETE),
            Self::Property => reads || *method == Method::PATCH,
        }
    }

    /// The value of `Allow`.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::Delete => "DELETE, OPTIONS",
            Self::Collection | Self::Page => "GET, HEAD, POST, OPTIONS",
            Self::Members => "GET, HEAD, PATCH, DELETE, OPTIONS",
            Self::Property => "GET, HEAD, PATCH, OPTIONS",
        }
    }
}
