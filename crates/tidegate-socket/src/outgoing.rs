//! The messages that a socket sends.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tidegate_feed::{Cursor, Ended};
use tidegate_graphql::GraphqlResponse;
use tidegate_sql::{ErrorMember, ErrorMembers};

use super::handshake::Dialect;
use super::message::InvalidMessage;
use super::subscribe::Refusal;
use tidegate_http::error::ApiError;

/// The messages for one request.
pub(super) type Messages = Vec<Bytes>;

/// Builds an error message of the protocol. In Tidegate's own protocol it is `{"type":"error",…}`.
/// In `graphql-transport-ws` it is the message `error` with a list of one error.
pub(super) fn error(dialect: Dialect, id: Option<&str>, code: &str, message: &str) -> Bytes {
    error_with(dialect, id, code, message, Map::new())
}

/// Builds the same message as [`error`]. The members `more` are added to the message in Tidegate's
/// own protocol, and to `extensions` in `graphql-transport-ws`.
pub(super) fn error_with(
    dialect: Dialect,
    id: Option<&str>,
    code: &str,
    message: &str,
    more: Map<String, Value>,
) -> Bytes {
    if dialect == Dialect::Tidegate {
        return json(&ErrorMessage {
            r#type: "error",
            id: id.map(raw),
            error: code,
            message,
            more,
        });
    }
    let mut extensions = more;
    extensions.insert("code".to_owned(), json!(code));
    json(&TransportError {
        id: raw(id.unwrap_or("\"\"")),
        r#type: "error",
        payload: &json!([{"message": message, "extensions": extensions}]),
    })
}

/// The error message of Tidegate's own protocol.
#[derive(Serialize)]
struct ErrorMessage<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    error: &'a str,
    message: &'a str,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// The error message of `graphql-transport-ws`, with a list of errors.
#[derive(Serialize)]
struct TransportError<'a> {
    id: &'a RawValue,
    r#type: &'static str,
    payload: &'a Value,
}

/// Embeds an id in JSON as the client wrote it.
fn raw(id: &str) -> &RawValue {
    serde_json::from_str(id).unwrap_or(RawValue::NULL)
}

fn json(message: &impl Serialize) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}

impl InvalidMessage {
    pub(super) fn text(&self) -> Bytes {
        error(
            Dialect::Tidegate,
            self.id.as_deref(),
            self.code,
            &self.message,
        )
    }
}

/// The members that an error message takes from an error of PostgreSQL.
const MEMBERS: [ErrorMember; 7] = [
    ErrorMember::Sqlstate,
    ErrorMember::Position,
    ErrorMember::Detail,
    ErrorMember::Hint,
    ErrorMember::Constraint,
    ErrorMember::Column,
    ErrorMember::Table,
];

/// Builds the error message for a failed request. If PostgreSQL reported the error, the message
/// also has the members in [`MEMBERS`].
pub(super) fn failure(dialect: Dialect, id: Option<&str>, failure: &ApiError) -> Bytes {
    let rejection = failure.rejection();
    let more = rejection.map(|error| json!(ErrorMembers::new(error, &MEMBERS)));
    let more = match more {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let code = failure.code.to_ascii_lowercase();
    error_with(dialect, id, &code, &failure.message, more)
}

/// Builds the message with the reason why a subscription was refused.
pub(super) fn refusal(dialect: Dialect, id: &str, refusal: &Refusal) -> Bytes {
    match refusal {
        Refusal::GraphQl(errors) => graphql(dialect, id, GraphqlResponse::refused(errors))
            .concat()
            .into(),
        Refusal::Other { code, message } => error(dialect, Some(id), code, message),
    }
}

/// Builds the messages for the collected response to a GraphQL operation. If the operation was
/// executed, the messages are the response and `complete`. Otherwise there is one error message.
pub(super) fn graphql(dialect: Dialect, id: &str, response: GraphqlResponse) -> Messages {
    let body = response.body.into_bytes().unwrap_or_default();
    let mut out = BytesMut::with_capacity(body.len() + id.len() + 64);
    out.put_slice(b"{\"id\":");
    out.put_slice(id.as_bytes());
    if response.executed {
        if dialect == Dialect::Tidegate {
            // The response is an object with at least one member. Its members are inserted after
            // the members of the message.
            out.put_slice(b",\"type\":\"next\",");
            out.put_slice(body.get(1..).unwrap_or_default());
        } else {
            out.put_slice(b",\"type\":\"next\",\"payload\":");
            out.put_slice(&body);
            out.put_slice(b"}");
        }
        return vec![out.freeze(), complete(id)];
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let errors = &body["errors"];
    if dialect == Dialect::Tidegate {
        let code = errors[0]["extensions"]["code"].as_str().unwrap_or_default();
        let message = errors[0]["message"].as_str().unwrap_or_default();
        let mut more = Map::new();
        more.insert("errors".to_owned(), errors.clone());
        let code = code.to_ascii_lowercase();
        return vec![error_with(dialect, Some(id), &code, message, more)];
    }
    vec![json(&TransportError {
        id: raw(id),
        r#type: "error",
        payload: errors,
    })]
}

pub(super) fn complete(id: &str) -> Bytes {
    format!("{{\"type\":\"complete\",\"id\":{id}}}").into()
}

/// The code and the message with which the end of a subscription is reported, and the cursor after
/// which the client can resume; `None` if no such cursor is known.
pub(crate) fn ended(ended: &Ended) -> (&'static str, String, Option<Cursor>) {
    match ended {
        Ended::NotAllowed => (
            "not_allowed",
            "the role may not read the columns any more".to_owned(),
            None,
        ),
        Ended::Unverified => (
            "database_unavailable",
            "the privileges of the role could not be checked; subscribe again with `after`"
                .to_owned(),
            None,
        ),
        Ended::NoTable => ("no_table", "the table was dropped".to_owned(), None),
        Ended::Changed { problem } => ("table_changed", problem.clone(), None),
        Ended::SlowConsumer { cursor } => (
            "slow_consumer",
            "events came faster than they were read; subscribe again with `after`".to_owned(),
            *cursor,
        ),
        Ended::Stopped => (
            "stopped",
            "server shutting down; reconnect".to_owned(),
            None,
        ),
    }
}
