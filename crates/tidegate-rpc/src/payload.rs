//! What a message holds: one call, or a batch of them.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_sql::InputError;
use tidegate_sql::statement::Params;

use crate::document::{self, Elements, Envelope};
use crate::error::Error;
use crate::id::Id;
use crate::reply::Reply;

/// How large the parts of a message may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Calls in a batch.
    pub calls: usize,
    /// Parameter sets in all calls of a message together.
    pub parameter_sets: usize,
    /// Arrays and objects inside each other.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            calls: 1_000,
            parameter_sets: 100_000,
            depth: 128,
        }
    }
}

/// The calls of one message, borrowed from its text.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// An object.
    Single(Call<'a>),
    /// An array of one call or more (JSON-RPC 2.0, section 6).
    Batch(Vec<Call<'a>>),
}

/// A request object (JSON-RPC 2.0, section 4).
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The name of the method.
    pub method: Cow<'a, str>,
    /// The values of its placeholders, or what is wrong with the member: that is no fault of the
    /// envelope, so it is told when the call's turn comes.
    pub params: Result<Params<'a>, InputError>,
    /// Comes back with the answer; without it the call is a notification and has none.
    pub id: Option<Id<'a>>,
}

impl Call<'_> {
    /// Whether nobody waits for an answer.
    pub fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    fn count(&self) -> usize {
        self.params.as_ref().map_or(1, Params::count)
    }
}

impl<'a> Payload<'a> {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// The whole answer: `-32700` for what is no JSON text (RFC 8259), `-32600` for what is no
    /// request object, for an empty batch and for one beyond the limits. In a batch each element
    /// that is no request object has its own `-32600`, and every other call with an id has
    /// `-32603`, because nothing of the batch runs.
    pub fn parse(text: &'a [u8], limits: Limits) -> Result<Self, Reply> {
        let document = document::read(text, limits.depth).map_err(|error| Reply::of(&error))?;
        let payload = if document.get().starts_with('[') {
            Self::batch(document, limits)?
        } else {
            Self::Single(call(document).map_err(|error| Reply::of(&error))?)
        };
        let sets = payload.calls().iter().map(Call::count).sum::<usize>();
        if sets > limits.parameter_sets {
            return Err(Reply::of(&Error::TooMany {
                what: "parameter sets",
                limit: limits.parameter_sets,
            }));
        }
        Ok(payload)
    }

    /// The calls in their order.
    pub fn calls(&self) -> &[Call<'a>] {
        match self {
            Self::Single(call) => std::slice::from_ref(call),
            Self::Batch(calls) => calls,
        }
    }

    fn batch(document: &'a RawValue, limits: Limits) -> Result<Self, Reply> {
        let Some(elements) = Elements::read(document, limits.calls) else {
            return Err(Reply::of(&Error::InvalidRequest("an unreadable array")));
        };
        if elements.count > limits.calls {
            return Err(Reply::of(&Error::TooMany {
                what: "calls",
                limit: limits.calls,
            }));
        }
        if elements.kept.is_empty() {
            return Err(Reply::of(&Error::InvalidRequest(
                "an empty array, expected one request object or more",
            )));
        }
        let read: Vec<_> = elements.kept.into_iter().map(call).collect();
        if read.iter().all(Result::is_ok) {
            return Ok(Self::Batch(read.into_iter().flatten().collect()));
        }
        Err(Reply::refused(&read))
    }
}

/// Reads a request object.
fn call(raw: &RawValue) -> Result<Call<'_>, Error> {
    let invalid = |problem| Err(Error::InvalidRequest(problem));
    if !raw.get().starts_with('{') {
        return invalid("the request must be an object");
    }
    let Some(envelope) = Envelope::read(raw) else {
        return invalid("the request has a member twice");
    };
    if envelope.jsonrpc.and_then(document::string).as_deref() != Some("2.0") {
        return invalid("`jsonrpc` must be the string \"2.0\"");
    }
    let Some(method) = envelope.method.and_then(document::string) else {
        return invalid("`method` must be a string");
    };
    let id = match envelope.id.map(Id::new) {
        Some(None) => return invalid("`id` must be a string, a number or null"),
        Some(id) => id,
        None => None,
    };
    let params = match envelope.params {
        None => Ok(Params::default()),
        Some(raw) if raw.get().starts_with(['{', '[', 'n']) => Params::read(raw, "params"),
        Some(_) => return invalid("`params` must be an object or an array of objects"),
    };
    Ok(Call { method, params, id })
}
