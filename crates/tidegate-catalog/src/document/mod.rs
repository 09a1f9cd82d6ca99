//! The document that describes a schema as a role sees it, and its conversion into a [`Schema`].
//!
//! PostgreSQL generates the document (see `load`), and tests write it by hand. It is a JSON object
//! with the members of the structs here. A type is given by its OID or by its name (`"int4"`,
//! `"text[]"`). It is a built-in type or an entry of `types`.

mod build;
mod link;
mod part;
mod type_tree;

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::error::{Error, Result};
use crate::model::{Collation, Generated, IdentityKind, Persistence, RelationKind, Schema};
use type_tree::TypeTree;

pub(crate) use build::schema;
pub(crate) use part::{RelationDocument, Types};

impl Schema {
    /// Parses a document into a schema.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the text is not the document of a schema, names an unknown type, or
    /// has an incomplete foreign key.
    pub fn parse(document: &str) -> Result<Self> {
        let document: Document =
            serde_json::from_str(document).map_err(|error| Error::Malformed(error.to_string()))?;
        build::document(document)
    }
}

/// The document of a whole schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Box<str>,
    /// All types that are not built in, and optionally built-in types.
    #[serde(default)]
    types: Vec<TypeEntry>,
    relations: Vec<RelationEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypeEntry {
    oid: u32,
    name: Box<str>,
    schema: Box<str>,
    kind: TypeEntryKind,
    /// The type of the elements of an array, the base type of a domain, or the type of the bounds
    /// of a range or multirange; `None` for other types.
    inner: Option<TypeName>,
    /// The labels of an enum.
    #[serde(default)]
    labels: Vec<String>,
    /// The attributes of a composite type.
    #[serde(default)]
    attributes: Vec<Attribute>,
    /// The type modifier of a domain; `None` if it has none.
    modifier: Option<i32>,
    /// Whether a domain is NOT NULL.
    #[serde(default)]
    not_null: bool,
    /// Whether a domain has a default.
    #[serde(default)]
    has_default: bool,
    /// Whether the aggregate functions `min` and `max` accept the type.
    #[serde(default)]
    has_min_max: bool,
    /// How values of the type can be compared, for a simple type that is not built in; `None` for
    /// other types.
    comparisons: Option<ComparisonsEntry>,
}

/// How two values of a type can be compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparisonsEntry {
    /// The operators among `=`, `<>`, `<`, `<=`, `>` and `>=` that the type has.
    operators: Box<[Box<str>]>,
    /// Whether the type has a default B-tree operator class, as ORDER BY requires.
    #[serde(default)]
    sorts: bool,
    /// Whether the type has a default operator class with equality, as GROUP BY requires.
    #[serde(default)]
    groups: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TypeEntryKind {
    Simple,
    Enum,
    Pseudo,
    Array,
    Range,
    Multirange,
    Domain,
    Composite,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    name: Box<str>,
    r#type: TypeName,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RelationEntry {
    #[serde(default)]
    oid: u32,
    name: Box<str>,
    kind: RelationKind,
    #[serde(default)]
    persistence: Persistence,
    /// Whether row level security applies to the role for this relation.
    #[serde(default)]
    row_security: bool,
    /// Whether all policies are known to call only functions that cannot write: built-in functions
    /// that are not volatile, and Tidegate's functions for claims.
    #[serde(default)]
    plain_policies: bool,
    comment: Option<Box<str>>,
    /// The role's privileges on the whole relation.
    rights: Rights,
    columns: Vec<ColumnEntry>,
    #[serde(default)]
    constraints: Vec<ConstraintEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    name: Box<str>,
    /// The number of the column (`attnum`). If it is `None`, the column has the number after that
    /// of the previous column, and the first column has 1.
    number: Option<i16>,
    r#type: TypeName,
    modifier: Option<i32>,
    #[serde(default)]
    not_null: bool,
    #[serde(default)]
    has_default: bool,
    generated: Option<Generated>,
    identity: Option<IdentityKind>,
    collation: Option<Collation>,
    comment: Option<Box<str>>,
    /// The role's privileges on this column; `None` if they are the same as on the relation.
    rights: Option<Rights>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintEntry {
    name: Box<str>,
    kind: ConstraintEntryKind,
    columns: Vec<Box<str>>,
    /// The referenced columns of a foreign key; `None` for other constraints.
    references: Option<ReferencesEntry>,
    /// Whether rows may violate a foreign key (`NOT VALID`, `NOT ENFORCED`).
    #[serde(default)]
    not_valid: bool,
    /// Whether the last column at each end of a foreign key is compared as a range and not by
    /// equality (`PERIOD`).
    #[serde(default)]
    period: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ConstraintEntryKind {
    Primary,
    Unique,
    Foreign,
    Check,
    Exclude,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferencesEntry {
    /// The schema of the referenced relation; `None` for the schema of the document.
    schema: Option<Box<str>>,
    relation: Box<str>,
    columns: Vec<Box<str>>,
}

/// A reference to a type, by its OID or by its name.
#[derive(Debug)]
enum TypeName {
    Number(u32),
    Name(Box<str>),
}

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrName;

        impl Visitor<'_> for NumberOrName {
            type Value = TypeName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number or the name of a type")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<TypeName, E> {
                u32::try_from(number)
                    .map(TypeName::Number)
                    .map_err(|_| E::custom("a type's number has 32 bits"))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<TypeName, E> {
                Ok(TypeName::Name(name.into()))
            }
        }

        deserializer.deserialize_any(NumberOrName)
    }
}

/// Privileges, written as letters: `s` for SELECT, `i` for INSERT, `u` for UPDATE, `d` for DELETE.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are four separate rights"
)]
struct Rights {
    select: bool,
    insert: bool,
    update: bool,
    delete: bool,
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PrivilegesVisitor;

        impl Visitor<'_> for PrivilegesVisitor {
            type Value = Rights;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text of the letters `s`, `i`, `u`, `d`")
            }

            fn visit_str<E: de::Error>(self, letters: &str) -> Result<Rights, E> {
                let mut rights = Rights::default();
                for letter in letters.chars() {
                    match letter {
                        's' => rights.select = true,
                        'i' => rights.insert = true,
                        'u' => rights.update = true,
                        'd' => rights.delete = true,
                        _ => return Err(E::invalid_value(de::Unexpected::Char(letter), &self)),
                    }
                }
                Ok(rights)
            }
        }

        deserializer.deserialize_str(PrivilegesVisitor)
    }
}
