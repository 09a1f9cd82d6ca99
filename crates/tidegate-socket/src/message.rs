//! The messages of Tidegate's own protocol.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_values::json::{self, JsonKind, Members};

/// An id: the JSON text of a string or a number, as the client wrote it.
pub(super) type Id = Box<str>;

/// A message of a client.
pub(super) enum Message<'a> {
    /// A token, which sets or renews the identity of the socket.
    Auth(Cow<'a, str>),
    /// A GraphQL operation of any kind.
    Subscribe {
        id: Id,
        schema: Cow<'a, str>,
        after: Option<Cow<'a, str>>,
    },
    /// A subscription to the rows of a table, without GraphQL.
    Raw { id: Id },
    /// Ends the subscription or operation with this id.
    Unsubscribe(Id),
    /// One call of a method, or a batch of calls (JSON-RPC).
    Rpc,
    /// An SQL statement. The id is `None` if the message has no valid one.
    Sql(Option<Id>),
}

/// The error for an invalid message. The id is `None` if the message has no valid one.
#[derive(Debug)]
pub(super) struct InvalidMessage {
    pub id: Option<Id>,
    pub code: &'static str,
    pub message: String,
}

/// The members of a message, and its id. The id is `None` if it is missing, or is neither a string
/// nor a number.
pub(super) struct MessageFields<'a> {
    pub members: Members<'a>,
    pub id: Option<Id>,
}

impl<'a> MessageFields<'a> {
    pub(super) fn invalid(&self, code: &'static str, message: impl Into<String>) -> InvalidMessage {
        InvalidMessage {
            id: self.id.clone(),
            code,
            message: message.into(),
        }
    }

    /// The member with this name; `None` if it is absent or null.
    pub(super) fn find(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.members.iter().find(|(known, _)| *known == name);
        let value = found.map(|(_, value)| *value)?;
        (JsonKind::of(value.get()) != JsonKind::Null).then_some(value)
    }

    /// The text of the member with this name; `None` if it is absent or null. Fails if it is not a
    /// string.
    pub(super) fn text(&self, name: &str) -> Result<Option<Cow<'a, str>>, InvalidMessage> {
        let Some(value) = self.find(name) else {
            return Ok(None);
        };
        let kind = JsonKind::of(value.get());
        if kind != JsonKind::String {
            let text = format!("`{name}` is {kind}, expected a string");
            return Err(self.invalid("invalid_message", text));
        }
        let text = json::string(value.get());
        text.map(Some)
            .map_err(|problem| self.invalid("invalid_message", format!("`{name}` is {problem}")))
    }

    pub(super) fn required(&self, name: &str) -> Result<Cow<'a, str>, InvalidMessage> {
        let text = format!("`{name}` is missing");
        self.text(name)?
            .ok_or_else(|| self.invalid("missing_member", text))
    }

    fn required_id(&self) -> Result<Id, InvalidMessage> {
        self.id
            .clone()
            .ok_or_else(|| self.invalid("missing_member", "`id` is missing: a string or a number"))
    }
}

/// Splits a message into its members.
pub(super) fn fields(text: &str) -> Result<MessageFields<'_>, InvalidMessage> {
    let invalid = |code, message| InvalidMessage {
        id: None,
        code,
        message,
    };
    let problem = |error: serde_json::Error| {
        let text = format!(
            "the message cannot be read as JSON: {}",
            json::problem(&error)
        );
        invalid("invalid_json", text)
    };
    let document: &RawValue = serde_json::from_str(text).map_err(problem)?;
    let kind = JsonKind::of(document.get());
    if kind != JsonKind::Object {
        let text = format!("a message is an object or an array of calls, not {kind}");
        return Err(invalid("invalid_message", text));
    }
    let members = json::members(document.get()).map_err(problem)?;
    let id = members.iter().find(|(name, _)| *name == "id");
    let id = id
        .map(|(_, value)| value.get())
        .filter(|id| matches!(JsonKind::of(id), JsonKind::String | JsonKind::Number))
        .map(Box::from);
    Ok(MessageFields { members, id })
}

/// Parses a message. Sets `fields` to its members, unless the message is an array of calls.
pub(super) fn read<'a>(
    text: &'a str,
    fields: &mut Option<MessageFields<'a>>,
) -> Result<Message<'a>, InvalidMessage> {
    if JsonKind::of(text.trim_start()) == JsonKind::Array {
        return Ok(Message::Rpc);
    }
    let fields = &*fields.insert(self::fields(text)?);
    if fields.find("jsonrpc").is_some() {
        return Ok(Message::Rpc);
    }
    let Some(kind) = fields.text("type")? else {
        if fields.find("q").is_some() {
            return Ok(Message::Sql(fields.id.clone()));
        }
        let text = "`type` is missing; a call has `jsonrpc`, a statement has `q`";
        return Err(fields.invalid("missing_member", text));
    };
    Ok(match &*kind {
        "auth" => Message::Auth(fields.required("token")?),
        "subscribe" => {
            let message = Message::Subscribe {
                id: fields.required_id()?,
                schema: fields.required("schema")?,
                after: fields.text("after")?,
            };
            fields.required("query")?;
            message
        }
        "subscription" => {
            fields.required("schema")?;
            fields.required("rel")?;
            Message::Raw {
                id: fields.required_id()?,
            }
        }
        "unsubscribe" => Message::Unsubscribe(fields.required_id()?),
        other => {
            let text = format!(
                "`type` is {other:?}, expected auth, subscribe, subscription or unsubscribe"
            );
            return Err(fields.invalid("unknown_type", text));
        }
    })
}
