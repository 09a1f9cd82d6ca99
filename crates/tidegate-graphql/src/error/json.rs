//! Serialises errors (GraphQL, section 7.1.2).

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use tidegate_plan::PathSegment;
use tidegate_sql::{ErrorMember, ErrorMembers};

use super::{Error, Location};

/// The members of PostgreSQL's error that `extensions` contains.
const MEMBERS: [ErrorMember; 6] = [
    ErrorMember::Sqlstate,
    ErrorMember::Table,
    ErrorMember::Column,
    ErrorMember::Constraint,
    ErrorMember::Detail,
    ErrorMember::Hint,
];

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<&'a [Location]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<ResponsePath<'a>>,
    extensions: Extensions<'a>,
}

#[derive(Serialize)]
struct Extensions<'a> {
    code: &'static str,
    #[serde(flatten)]
    database: Option<ErrorMembers<'a>>,
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rejection = self.rejection.as_deref();
        let object = ErrorObject {
            message: &self.message,
            locations: Some(&*self.locations).filter(|locations| !locations.is_empty()),
            path: (!self.path.is_empty()).then_some(ResponsePath(&self.path)),
            extensions: Extensions {
                code: self.code.as_str(),
                database: rejection.map(|error| ErrorMembers::new(error, &MEMBERS)),
            },
        };
        object.serialize(serializer)
    }
}

/// A path in a response: the keys of fields and the indexes of list elements.
pub(crate) struct ResponsePath<'a>(pub(crate) &'a [PathSegment]);

impl Serialize for ResponsePath<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for segment in self.0 {
            match segment {
                PathSegment::Key(key) => list.serialize_element(&**key)?,
                PathSegment::Index(index) => list.serialize_element(index)?,
            }
        }
        list.end()
    }
}
