//! Messages of `graphql-transport-ws`
//! (<https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md>).

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_values::json::{self, JsonKind, Members};

/// A message of a client.
pub(super) enum TransportMessage<'a> {
    /// `connection_init`, which starts the protocol. Its payload may contain a token and a schema.
    Init {
        token: Option<String>,
        schema: Option<String>,
    },
    /// `subscribe`, which starts an operation. The `id` is the JSON text of a string, as the client
    /// wrote it.
    Subscribe {
        id: Box<str>,
        payload: &'a RawValue,
    },
    /// `complete`, which ends the operation with this id.
    Complete(Box<str>),
    /// `ping`, with its payload.
    Ping(Option<&'a RawValue>),
    Pong,
}

/// Parses a message. The error is the reason in the Close frame, which has the code 4400.
pub(super) fn read(text: &str) -> Result<TransportMessage<'_>, &'static str> {
    let document: &RawValue = serde_json::from_str(text).map_err(|_| "the message is not JSON")?;
    if JsonKind::of(document.get()) != JsonKind::Object {
        return Err("the message is not an object");
    }
    let members = json::members(document.get()).map_err(|_| "the message is not JSON")?;
    let kind = text_of(&members, "type").ok_or("the message has no type")?;
    let payload = find(&members, "payload");
    if payload.is_some_and(|payload| JsonKind::of(payload.get()) != JsonKind::Object) {
        return Err("the payload is not an object");
    }
    let id = || {
        let id = find(&members, "id").filter(|id| JsonKind::of(id.get()) == JsonKind::String);
        let id = id.map(RawValue::get).filter(|id| id.len() > 2);
        id.map(Box::from).ok_or("the message has no id")
    };
    Ok(match &*kind {
        "connection_init" => init(payload),
        "subscribe" => TransportMessage::Subscribe {
            id: id()?,
            payload: payload
                .filter(|payload| {
                    let members = json::members(payload.get()).unwrap_or_default();
                    text_of(&members, "query").is_some()
                })
                .ok_or("the payload has no query")?,
        },
        "complete" => TransportMessage::Complete(id()?),
        "ping" => TransportMessage::Ping(payload),
        "pong" => TransportMessage::Pong,
        _ => return Err("the type of the message is unknown"),
    })
}

fn init(payload: Option<&RawValue>) -> TransportMessage<'static> {
    let members = payload.map(|payload| json::members(payload.get()).unwrap_or_default());
    let members = members.unwrap_or_default();
    let named = |key: &str| {
        let found = members
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(key))?;
        json::string(found.1.get()).ok().map(Cow::into_owned)
    };
    let token = named("authorization").or_else(|| named("token"));
    let bare = |text: String| match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim().to_owned(),
        _ => text,
    };
    TransportMessage::Init {
        token: token.map(bare).filter(|token| !token.is_empty()),
        schema: named("schema"),
    }
}

fn find<'a>(members: &Members<'a>, name: &str) -> Option<&'a RawValue> {
    let found = members.iter().find(|(known, _)| *known == name)?;
    (JsonKind::of(found.1.get()) != JsonKind::Null).then_some(found.1)
}

fn text_of(members: &Members<'_>, name: &str) -> Option<String> {
    let value = find(members, name)?;
    json::string(value.get()).ok().map(Cow::into_owned)
}
