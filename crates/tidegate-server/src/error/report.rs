//! The errors of an answer as the log and the metrics see them.

use tidegate_graphql::ErrorSummary;
use tidegate_sql::Rejection;

use super::{Context, Failure};

/// In which protocol a caller was told of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Rest,
    OAuth,
    Page,
    GraphQl,
    JsonRpc,
    WebSocket,
}

impl Protocol {
    /// The label in metrics.
    pub(crate) const fn name(self) -> &'static str {
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

/// The errors of one answer: codes, and of the first error the SQLSTATE and the names of table and
/// constraint. PostgreSQL's messages are left out, because they can hold values.
#[derive(Clone, Debug)]
pub(crate) struct Errors {
    pub protocol: Protocol,
    /// How many there are of each code, the code of the first error first.
    pub counts: Vec<(&'static str, u64)>,
    pub sqlstate: Option<Box<str>>,
    pub table: Option<Box<str>>,
    pub constraint: Option<Box<str>>,
}

impl Errors {
    /// One error without more to say.
    pub(crate) fn one(protocol: Protocol, code: &'static str) -> Self {
        Self::new(protocol, vec![(code, 1)], None)
    }

    /// The failure that an answer tells.
    pub(crate) fn of_failure(protocol: Protocol, failure: &Failure) -> Self {
        let counts = vec![(failure.code, 1)];
        Self::new(protocol, counts, failure.rejection())
    }

    /// The errors of a GraphQL response, if there are any.
    pub(crate) fn of_graphql(summary: &ErrorSummary) -> Option<Self> {
        let counts = summary.counts();
        let counts: Vec<_> = counts.map(|(code, count)| (code.as_str(), count)).collect();
        if counts.is_empty() {
            return None;
        }
        Some(Self::new(Protocol::GraphQl, counts, summary.rejection()))
    }

    /// The errors of JSON-RPC calls, if there are any. Their codes are those of REST, which tell
    /// more than the numbers of JSON-RPC.
    pub(crate) fn of_rpc(failures: &[Failure]) -> Option<Self> {
        let first = failures.first()?;
        let mut errors = Self::of_failure(Protocol::JsonRpc, first);
        for failure in &failures[1..] {
            let known = errors.counts.iter_mut();
            match known.into_iter().find(|(code, _)| *code == failure.code) {
                Some((_, count)) => *count += 1,
                None => errors.counts.push((failure.code, 1)),
            }
        }
        Some(errors)
    }

    /// The error of a JSON-RPC message that holds no call.
    pub(crate) fn of_reply(reply: &tidegate_rpc::Reply) -> Self {
        let code = match reply.code() {
            -32700 => "INVALID_JSON",
            _ => "INPUT_VALIDATION_ERROR",
        };
        Self::one(Protocol::JsonRpc, code)
    }

    fn new(
        protocol: Protocol,
        counts: Vec<(&'static str, u64)>,
        rejection: Option<&Rejection>,
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
    pub(crate) fn code(&self) -> Option<&'static str> {
        self.counts.first().map(|(code, _)| *code)
    }

    /// How many errors there are.
    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Logs the errors of an operation over a socket, which has no request of its own.
    pub(crate) fn log(&self, context: &Context<'_>) {
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
