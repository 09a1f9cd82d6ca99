//! PostgreSQL's error as members of an error response.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::DatabaseError;

/// A member of an error response, with a part of PostgreSQL's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is the field of `DatabaseError` of that name"
)]
pub enum ErrorMember {
    Sqlstate,
    Message,
    Detail,
    Hint,
    Position,
    Constraint,
    Column,
    Table,
}

/// Serialises PostgreSQL's error as members of an object, for `#[serde(flatten)]`. Each protocol
/// chooses its members and their order. Members that PostgreSQL did not send are left out.
#[derive(Clone, Copy, Debug)]
pub struct ErrorMembers<'a> {
    error: &'a DatabaseError,
    members: &'static [ErrorMember],
}

impl<'a> ErrorMembers<'a> {
    /// Serialises these members of the error, in this order.
    pub const fn new(error: &'a DatabaseError, members: &'static [ErrorMember]) -> Self {
        Self { error, members }
    }
}

impl Serialize for ErrorMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.error;
        let mut map = serializer.serialize_map(None)?;
        for member in self.members {
            let (name, text) = match member {
                ErrorMember::Sqlstate => ("sqlstate", Some(&error.sqlstate)),
                ErrorMember::Message => ("message", Some(&error.message)),
                ErrorMember::Detail => ("detail", error.detail.as_ref()),
                ErrorMember::Hint => ("hint", error.hint.as_ref()),
                ErrorMember::Constraint => ("constraint", error.constraint.as_ref()),
                ErrorMember::Column => ("column", error.column.as_ref()),
                ErrorMember::Table => ("table", error.table.as_ref()),
                ErrorMember::Position => {
                    if let Some(position) = error.position {
                        map.serialize_entry("position", &position)?;
                    }
                    continue;
                }
            };
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        map.end()
    }
}
