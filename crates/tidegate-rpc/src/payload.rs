//! Parses messages: one call, or a batch of calls.

use serde_json::value::RawValue;

use crate::call::Call;
use crate::document::{self, Elements};
use crate::error::Error;
use crate::reply::Reply;

/// Limits on the size of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of calls in a batch.
    pub calls: usize,
    /// The largest number of parameter sets in all calls of a message together.
    pub parameter_sets: usize,
    /// The maximum depth of nested arrays and objects.
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

/// The calls of a message, borrowed from its text.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// The message is an object: a single call.
    Single(Call<'a>),
    /// The message is a non-empty array: a batch (JSON-RPC 2.0, section 6).
    Batch(Vec<Call<'a>>),
}

impl<'a> Payload<'a> {
    /// Parses a message.
    ///
    /// # Errors
    ///
    /// The whole response: `-32700` for invalid JSON (RFC 8259); `-32600` for an invalid request
    /// object, an empty batch and a message beyond the limits. In a batch each invalid element has
    /// its own `-32600`, and every other call with an id has `-32603`, because nothing of the batch
    /// runs.
    pub fn parse(text: &'a [u8], limits: Limits) -> Result<Self, Reply> {
        let document = document::read(text, limits.depth).map_err(|error| Reply::of(&error))?;
        let payload = if document.get().starts_with('[') {
            Self::batch(document, limits)?
        } else {
            Self::Single(Call::parse(document).map_err(|error| Reply::of(&error))?)
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

    /// The calls of the message, in their order.
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
        let read: Vec<_> = elements.kept.into_iter().map(Call::parse).collect();
        if read.iter().all(Result::is_ok) {
            return Ok(Self::Batch(read.into_iter().flatten().collect()));
        }
        Err(Reply::refused(&read))
    }
}
