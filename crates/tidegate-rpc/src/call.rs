//! Calls: the request objects of a message.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_sql::InputError;
use tidegate_sql::statement::Params;

use crate::document::{self, Envelope};
use crate::error::Error;
use crate::id::Id;

/// A request object (JSON-RPC 2.0, section 4).
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The name of the method.
    pub method: Cow<'a, str>,
    /// The values of the method's placeholders, or the error in them. The error is reported only
    /// when the call runs, because the request object itself is valid.
    pub params: Result<Params<'a>, InputError>,
    /// The id, which the response repeats. A call without an id is a notification and has no
    /// response.
    pub id: Option<Id<'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn parse(raw: &'a RawValue) -> Result<Self, Error> {
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
        Ok(Self { method, params, id })
    }

    /// Whether the call is a notification, which has no response.
    pub fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    pub(crate) fn count(&self) -> usize {
        self.params.as_ref().map_or(1, Params::count)
    }
}
