//! The data about a request for the log and the metrics.

use bytes::Bytes;
use http::HeaderName;
use http::request::Parts;
use tidegate_graphql::ErrorSummary;
use tidegate_sql::{DatabaseError, Login};

use crate::activity::LONGEST_BODY;

/// The header with the id of a request.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The route of a request, for the log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLabel {
    /// The index of the route in the table of routes.
    pub index: usize,
    /// The path of the route, such as `/api/v4/sql/schema/{schema}`.
    pub path: &'static str,
}

/// The data about a request that is recorded for the log and the metrics while the request is
/// served.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The route of the request; `None` if no route matches its path.
    pub route: Option<RouteLabel>,
    /// The database and the role that the request runs as; `None` until the caller is
    /// authenticated.
    pub login: Option<Login>,
    /// The errors in the response. A response with status 200 can have errors too.
    pub errors: Option<Box<Errors>>,
    /// The request's body, if it contains a statement; empty if the body is longer than
    /// [`LONGEST_BODY`].
    pub body: Option<Bytes>,
}

impl Subject {
    /// Keeps the body until the request has ended, so that the tenant's owner can see its
    /// statement. If the body is too long, keeps an empty body instead.
    pub fn keep_body(&mut self, body: &Bytes) {
        if body.len() <= LONGEST_BODY {
            self.body = Some(body.clone());
        } else {
            self.body = Some(Bytes::new());
        }
    }

    /// The path of the route; `none` for a request without a route.
    pub fn path(&self) -> &'static str {
        self.route.map_or("none", |route| route.path)
    }
}

/// The request to which a log line belongs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The request's id.
    pub request_id: &'a str,
    /// The path of the request's route.
    pub route: &'static str,
    /// The database of the request; `None` if the request has no login.
    pub database: Option<&'a str>,
    /// The role of the request; `None` if the request has no login.
    pub role: Option<&'a str>,
}

impl<'a> Context<'a> {
    /// The context of a request that came over HTTP.
    pub fn new(head: &'a Parts, subject: &'a Subject) -> Self {
        let id = head.headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let login = subject.login.as_ref();
        Self {
            request_id: id.unwrap_or_default(),
            route: subject.path(),
            database: login.map(|login| login.database.as_str()),
            role: login.map(|login| login.role.as_str()),
        }
    }
}

/// The protocol in which a response reports an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The REST and SQL endpoints.
    Rest,
    /// The OAuth endpoints (RFC 6749).
    OAuth,
    /// The HTML pages.
    Page,
    /// GraphQL over HTTP.
    GraphQl,
    /// JSON-RPC 2.0.
    JsonRpc,
    /// The messages of a WebSocket.
    WebSocket,
}

impl Protocol {
    /// The name of the protocol as a label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rest => "rest",
            Self::OAuth => "oauth",
            Self::Page => "page",
            Self::GraphQl => "graphql",
            Self::JsonRpc => "jsonrpc",
            Self::WebSocket => "websocket",
        }
    }
}

/// The errors of one response: the codes of all errors, and the SQLSTATE, table and constraint of
/// the first error. PostgreSQL's messages are left out, because they may contain values.
#[derive(Clone, Debug)]
pub struct Errors {
    /// The protocol of the response.
    pub protocol: Protocol,
    /// The number of errors for each code. The code of the first error comes first.
    pub counts: Vec<(&'static str, u64)>,
    /// The SQLSTATE of the first error; `None` if PostgreSQL did not report the error.
    pub sqlstate: Option<Box<str>>,
    /// The table that PostgreSQL names for the first error, if any.
    pub table: Option<Box<str>>,
    /// The constraint that PostgreSQL names for the first error, if any.
    pub constraint: Option<Box<str>>,
}

impl Errors {
    /// The summary of one error with this code and without details.
    pub fn one(protocol: Protocol, code: &'static str) -> Self {
        Self::new(protocol, vec![(code, 1)], None)
    }

    /// The errors of a GraphQL response; `None` without errors.
    pub fn of_graphql(summary: &ErrorSummary) -> Option<Self> {
        let counts = summary.counts();
        let counts: Vec<_> = counts.map(|(code, count)| (code.as_str(), count)).collect();
        if counts.is_empty() {
            return None;
        }
        Some(Self::new(Protocol::GraphQl, counts, summary.rejection()))
    }

    /// The error of a JSON-RPC message that could not be parsed into calls.
    pub fn of_reply(reply: &tidegate_rpc::Reply) -> Self {
        let code = match reply.code() {
            -32700 => "INVALID_JSON",
            _ => "INPUT_VALIDATION_ERROR",
        };
        Self::one(Protocol::JsonRpc, code)
    }

    pub(crate) fn new(
        protocol: Protocol,
        counts: Vec<(&'static str, u64)>,
        rejection: Option<&DatabaseError>,
    ) -> Self {
        let name = |name: Option<&String>| name.map(|name| name.as_str().into());
        Self {
            protocol,
            counts,
            sqlstate: rejection.map(|rejection| (*rejection.sqlstate).into()),
            table: name(rejection.and_then(|rejection| rejection.table.as_ref())),
            constraint: name(rejection.and_then(|rejection| rejection.constraint.as_ref())),
        }
    }

    /// The code of the first error.
    pub fn code(&self) -> Option<&'static str> {
        self.counts.first().map(|(code, _)| *code)
    }

    /// The number of errors.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Logs the errors of an operation over a WebSocket. The access log has no other line for such
    /// an operation.
    pub fn log(&self, context: &Context<'_>) {
        tracing::info!(
            target: "tidegate::access",
            request_id = context.request_id,
            route = context.route,
            database = context.database,
            role = context.role,
            error = self.code(),
            errors = self.total(),
            sqlstate = self.sqlstate.as_deref(),
            table = self.table.as_deref(),
            constraint = self.constraint.as_deref(),
            "operation failed"
        );
    }
}
