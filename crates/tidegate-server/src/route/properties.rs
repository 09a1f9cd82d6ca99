//! The properties of routes.

use super::Methods;

/// A row of the table of routes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// The path, with names in braces.
    pub path: &'static str,
    pub methods: Methods,
    pub access: Access,
    pub surface: Surface,
    pub body: BodyLimit,
}

/// Who may use a route. The handlers check it; the OpenAPI description has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone: the path needs no credentials.
    Public,
    /// A token, or the default user without one.
    Caller,
    /// A token.
    User,
    /// An OAuth client, by its credentials or as a public client.
    Client,
    /// A browser, by its cookie.
    Browser,
    /// An operator, also on a listener for operators.
    Operator,
}

/// The form of a route's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The REST and SQL endpoints.
    Rest,
    /// RFC 6749, section 5.2.
    OAuth,
    /// OAuth with the members of REST.
    Guest,
    /// An HTML page, which no other origin may read.
    Page,
    /// `{"errors":[…]}`.
    GraphQl,
}

/// The largest request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    /// No body is read.
    None,
    /// 64 KiB: a form.
    Form,
    /// The configured limit.
    Configured,
}

impl BodyLimit {
    /// The limit in bytes, given the configured one.
    pub(crate) fn bytes(self, configured: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Form => configured.min(64 * 1024),
            Self::Configured => configured,
        }
    }
}
