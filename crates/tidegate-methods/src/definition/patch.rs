//! Changes of a definition, member by member.

use tidegate_values::OutputFormat;

use super::{Definition, Limits, Texts, read};
use crate::error::Result;
use crate::name::MethodName;

/// What becomes of a member that may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// It stays: the patch does not name it.
    #[default]
    Keep,
    /// It goes: the patch says null.
    Clear,
    /// It becomes this.
    Set(T),
}

/// A change of a definition: what it does not name stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// The new name.
    pub name: Option<MethodName>,
    /// The new statement.
    pub q: Option<String>,
    /// The hints, all of them.
    pub type_hints: Change<Texts>,
    /// The formats, all of them.
    pub type_formats: Change<Texts>,
    /// The form of the result.
    pub output_format: Change<OutputFormat>,
}

impl<T: Clone + Default> Change<T> {
    fn apply(&self, value: &T) -> T {
        match self {
            Self::Keep => value.clone(),
            Self::Clear => T::default(),
            Self::Set(new) => new.clone(),
        }
    }
}

impl Patch {
    /// Reads the body of a request that changes a method: an object with any of the members of a
    /// definition. Null clears `type_hints`, `type_formats` and `output_format`.
    ///
    /// # Errors
    ///
    /// As [`Definition::parse`]; null for `method` or `q` is one too.
    pub fn parse(body: &[u8], limits: Limits) -> Result<Self> {
        read::patch(body, limits)
    }

    /// The definition after the change.
    pub fn apply(&self, definition: &Definition) -> Definition {
        let output_format = match self.output_format {
            Change::Keep => definition.output_format,
            Change::Clear => None,
            Change::Set(format) => Some(format),
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

/// Whether what PostgreSQL inferred of one definition holds for the other.
pub(crate) fn infers_the_same(one: &Definition, other: &Definition) -> bool {
    one.q == other.q && one.type_hints == other.type_hints
}
