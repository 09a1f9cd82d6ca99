//! The messages that a socket sends.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value, json};
use tidegate_feed::{Cursor, Ended};
use tidegate_graphql::GraphqlResponse;

use super::handshake::Dialect;
use super::message::InvalidMessage;
use super::subscribe::Refusal;
use tidegate_http::error::ApiError;

/// The messages for one request.
pub(super) type Messages = Vec<Bytes>;

/// The error message: `{"type":"error",…}`, or in `graphql-transport-ws` `error` with a list of
/// errors.
pub(super) fn error(dialect: Dialect, id: Option<&str>, code: &str, message: &str) -> Bytes {
    error_with(dialect, id, code, message, Map::new())
}

/// The error message of [`error`], with members that only some errors have.
pub(super) fn error_with(
    dialect: Dialect,
    id: Option<&str>,
    code: &str,
    message: &str,
    more: Map<String, Value>,
) -> Bytes {
    let mut out = BytesMut::with_capacity(128);
    out.put_slice(b"{");
    if dialect == Dialect::Tidegate {
        out.put_slice(b"\"type\":\"error\"");
        if let Some(id) = id {
            member(&mut out, "id", id);
        }
        member(&mut out, "error", &json!(code).to_string());
        member(&mut out, "message", &json!(message).to_string());
        for (name, value) in &more {
            member(&mut out, name, &value.to_string());
        }
    } else {
        let mut extensions = more;
        extensions.insert("code".to_owned(), json!(code));
        let payload = json!([{"message": message, "extensions": extensions}]);
        put(&mut out, b"\"id\":", id.unwrap_or("\"\""));
        out.put_slice(b",\"type\":\"error\"");
        member(&mut out, "payload", &payload.to_string());
    }
    out.put_slice(b"}");
    out.freeze()
}

fn member(out: &mut BytesMut, name: &str, text: &str) {
    out.put_slice(b",\"");
    out.put_slice(name.as_bytes());
    put(out, b"\":", text);
}

fn put(out: &mut BytesMut, before: &[u8], text: &str) {
    out.put_slice(before);
    out.put_slice(text.as_bytes());
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

/// An error response of an endpoint as a message, with PostgreSQL's error.
pub(super) fn failure(dialect: Dialect, id: Option<&str>, failure: &ApiError) -> Bytes {
    let mut more = Map::new();
    let details = failure.details.as_deref();
    if let Some(rejection) = details.and_then(|details| details.rejection.as_ref()) {
        more.insert("sqlstate".to_owned(), json!(rejection.sqlstate));
        if let Some(position) = rejection.position {
            more.insert("position".to_owned(), json!(position));
        }
        for (name, value) in [
            ("detail", &rejection.detail),
            ("hint", &rejection.hint),
            ("constraint", &rejection.constraint),
            ("column", &rejection.column),
            ("table", &rejection.table),
        ] {
            if let Some(value) = value {
                more.insert(name.to_owned(), json!(value));
            }
        }
    }
    let code = failure.code.to_ascii_lowercase();
    error_with(dialect, id, &code, &failure.message, more)
}

/// The message with the reason why a subscription was refused.
pub(super) fn refusal(dialect: Dialect, id: &str, refusal: &Refusal) -> Bytes {
    match refusal {
        Refusal::GraphQl(errors) => graphql(dialect, id, GraphqlResponse::refused(errors))
            .concat()
            .into(),
        Refusal::Other { code, message } => error(dialect, Some(id), code, message),
    }
}

/// The messages for the collected response to a GraphQL operation. After a response, `complete` is
/// sent; after an error, nothing follows.
pub(super) fn graphql(dialect: Dialect, id: &str, answer: GraphqlResponse) -> Messages {
    let body = answer.body.into_bytes().unwrap_or_default();
    let mut out = BytesMut::with_capacity(body.len() + id.len() + 64);
    put(&mut out, b"{\"id\":", id);
    if answer.executed {
        if dialect == Dialect::Tidegate {
            // The response is an object that is not empty. Its members are inserted after those of
            // the message.
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
    out.put_slice(b",\"type\":\"error\"");
    member(&mut out, "payload", &errors.to_string());
    out.put_slice(b"}");
    vec![out.freeze()]
}

/// The message `complete`.
pub(super) fn complete(id: &str) -> Bytes {
    format!("{{\"type\":\"complete\",\"id\":{id}}}").into()
}

/// The code, the message and the cursor with which the end of a subscription is reported.
pub(crate) fn ended(ended: &Ended) -> (&'static str, String, Option<Cursor>) {
    match ended {
        Ended::NotAllowed => (
            "not_allowed",
            "the role may not read the columns any more".to_owned(),
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
