//! The values of a request, before they are bound to placeholders.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tidegate_values::json::{self, JsonKind};

use crate::error::InputError;

/// The parameter sets of a request, one or several, borrowed from its JSON.
#[derive(Clone, Debug)]
pub enum Params<'a> {
    /// The member `params` is an object. Without the member, or with null, the object is empty.
    One(ParameterSet<'a>),
    /// The member `params` is a non-empty array of objects.
    Many(Vec<ParameterSet<'a>>),
}

/// The members of a `params` object in order. The names are distinct.
pub type ParameterSet<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

impl Default for Params<'_> {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

impl<'a> Params<'a> {
    /// Parses the JSON of a `params` member; `place` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`InputError::InvalidField`] if the JSON is neither null nor an object nor an array of
    /// objects, if the array is empty, or if an object has a name twice.
    pub fn read(raw: &'a RawValue, place: &str) -> Result<Self, InputError> {
        match JsonKind::of(raw.get()) {
            JsonKind::Null => Ok(Self::default()),
            JsonKind::Object => Ok(Self::One(set(raw, || place.to_owned())?)),
            JsonKind::Array => {
                let elements =
                    json::elements(raw.get()).map_err(|error| unreadable(place, &error))?;
                if elements.is_empty() {
                    return Err(invalid(
                        place,
                        "an empty array, expected one object or more",
                    ));
                }
                let sets = elements.into_iter().enumerate();
                sets.map(|(index, raw)| set(raw, || format!("{place}[{index}]")))
                    .collect::<Result<_, _>>()
                    .map(Self::Many)
            }
            kind => Err(invalid(
                place,
                &format!("{kind}, expected an object or an array of objects"),
            )),
        }
    }

    /// The number of times that the statement runs.
    pub fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(sets) => sets.len(),
        }
    }
}

fn set(raw: &RawValue, place: impl Fn() -> String) -> Result<ParameterSet<'_>, InputError> {
    let kind = JsonKind::of(raw.get());
    if kind != JsonKind::Object {
        return Err(invalid(&place(), &format!("{kind}, expected an object")));
    }
    let members = json::members(raw.get()).map_err(|error| unreadable(&place(), &error))?;
    match json::repeated(&members) {
        Some(name) => Err(invalid(&format!("{}.{name}", place()), "given twice")),
        None => Ok(members),
    }
}

fn invalid(member: &str, problem: &str) -> InputError {
    InputError::InvalidField {
        field: member.to_owned(),
        problem: problem.to_owned(),
    }
}

fn unreadable(member: &str, error: &serde_json::Error) -> InputError {
    invalid(member, &json::problem(error))
}
