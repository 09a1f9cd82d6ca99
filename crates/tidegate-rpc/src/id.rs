//! The id of a call.

use serde_json::value::RawValue;

/// The id of a call as it was sent: a number keeps its digits, and a string its escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id in a response to a call that has no readable id.
    pub(crate) const NULL: Id<'static> = Id("null");

    /// Reads an id; `None` if it is not a string, a number or null (JSON-RPC 2.0, section 4).
    pub(crate) fn new(raw: &'a RawValue) -> Option<Self> {
        let text = raw.get();
        let fits =
            text == "null" || matches!(text.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
        fits.then_some(Self(text))
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &'a str {
        self.0
    }
}
