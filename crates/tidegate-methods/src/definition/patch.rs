//! Changes to a definition, member by member.

use tidegate_values::OutputFormat;

use super::{Definition, Limits, StringMap, read};
use crate::error::Result;
use crate::name::MethodName;

/// A change to an optional member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MemberChange<T> {
    /// The patch does not have the member, so the member is unchanged.
    #[default]
    Keep,
    /// The patch has null, so the member is removed.
    Clear,
    /// The patch has this value for the member.
    Set(T),
}

/// A change to a definition. Members that the patch does not have are unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The new name; `None` keeps the name.
    pub name: Option<MethodName>,
    /// The new text of the statement; `None` keeps the text.
    pub q: Option<String>,
    /// The new type hints, which replace all previous type hints.
    pub type_hints: MemberChange<StringMap>,
    /// The new formats, which replace all previous formats.
    pub type_formats: MemberChange<StringMap>,
    /// The new output format.
    pub output_format: MemberChange<OutputFormat>,
}

impl<T: Clone + Default> MemberChange<T> {
    fn apply(&self, value: &T) -> T {
        match self {
            Self::Keep => value.clone(),
            Self::Clear => T::default(),
            Self::Set(new) => new.clone(),
        }
    }
}

impl Patch {
    /// Parses the body of a request that changes a method: an object with any members of a
    /// definition. Null clears `type_hints`, `type_formats` and `output_format`.
    ///
    /// # Errors
    ///
    /// As [`Definition::parse`]. Null for `method` or `q` is an error too.
    pub fn parse(body: &[u8], limits: Limits) -> Result<Self> {
        read::patch(body, limits)
    }

    /// The definition after the change.
    pub fn apply(&self, definition: &Definition) -> Definition {
        let output_format = match self.output_format {
            MemberChange::Keep => definition.output_format,
            MemberChange::Clear => None,
            MemberChange::Set(format) => Some(format),
        };
        Definition {
            name: self.name.as_ref().unwrap_or(&definition.name).clone(),
            q: self.q.as_ref().unwrap_or(&definition.q).clone(),
            type_hints: self.type_hints.apply(&definition.type_hints),
            type_formats: self.type_formats.apply(&definition.type_formats),
            output_format,
        }
    }
}

/// Whether PostgreSQL infers the same types for both definitions, because they have the same
/// statement and hints.
pub(crate) fn infers_the_same(one: &Definition, other: &Definition) -> bool {
    one.q == other.q && one.type_hints == other.type_hints
}
