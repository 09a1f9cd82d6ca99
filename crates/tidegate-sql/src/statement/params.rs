//! The values that a request gives, before they are matched with placeholders.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::error::InputError;

/// One parameter set or a list of them, borrowed from the request's JSON.
#[derive(Clone, Debug)]
pub enum Params<'a> {
    /// `params` is an object (or absent, or null: then it is empty).
    One(ParameterSet<'a>),
    /// `params` is an array of objects, with at least one.
    Many(Vec<ParameterSet<'a>>),
}

/// The members of one `params` object, in the order of the request; no name comes twice.
pub type ParameterSet<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

impl Default for Params<'_> {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

impl<'a> Params<'a> {
    /// Reads the JSON of a `params` member; `place` is how errors name it.
    ///
    /// # Errors
    ///
    /// [`InputError::InvalidMember`] when it is neither null, an object nor an array of objects,
    /// when the array is empty, or when an object has a name twice.
    pub fn read(raw: &'a RawValue, place: &str) -> Result<Self, InputError> {
        let _ = (raw, place);
        unimplemented!()
    }
}
