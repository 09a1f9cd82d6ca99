//! The document that describes a schema as a role sees it, and its conversion into a [`Schema`].
//!
//! PostgreSQL generates it (see `load`), and tests write it by hand. It is a JSON object with the
//! members of the structs here. A type is given by the number of a built-in type or of an entry of
//! `types`, or by its name (`"int4"`, `"text[]"`).

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
    /// Parses a document.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the text is not such a document, or names an unknown type or column.
    pub fn parse(document: &str) -> Result<Self> {
        let document: Document =
            serde_json::from_str(document).map_err(|error| Error::Malformed(error.to_string()))?;
        build::document(document)
    }
}

/// A schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Box<str>,
    /// At least the types that are not built in.
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
    /// The element, base or range type.
    inner: Option<TypeName>,
    /// For an enum.
    #[serde(default)]
    labels: Vec<String>,
    /// For a composite type.
    #[serde(default)]
    attributes: Vec<Attribute>,
    /// For a domain.
    modifier: Option<i32>,
    /// For a domain.
    #[serde(default)]
    not_null: bool,
    /// For a domain.
    #[serde(default)]
    has_default: bool,
    /// Whether `min` and `max` accept it.
    #[serde(default)]
    has_least: bool,
    /// For a simple type that is not built in.
    comparisons: Option<ComparisonsEntry>,
}

/// How two values of a type can be compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparisonsEntry {
    /// Which of `=`, `<>`, `<`, `<=`, `>` and `>=` it has.
    operators: Box<[Box<str>]>,
    /// Whether it has a default B-tree operator class.
    #[serde(default)]
    sorts: bool,
    /// Whether it has a default operator class with equality.
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
    /// Whether row level security applies to the role.
    #[serde(default)]
    row_security: bool,
    /// Whether no policy calls anything except built-in functions that cannot write.
    #[serde(default)]
    plain_policies: bool,
    comment: Option<Box<str>>,
    /// The privileges on all columns.
    rights: Rights,
    columns: Vec<ColumnEntry>,
    #[serde(default)]
    constraints: Vec<ConstraintEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    name: Box<str>,
    /// If absent, one more than that of the previous column.
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
    /// The privileges on this column, if they differ from those on the relation.
    rights: Option<Rights>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintEntry {
    name: Box<str>,
    kind: ConstraintEntryKind,
    columns: Vec<Box<str>>,
    /// For a foreign key.
    references: Option<ReferencesEntry>,
    /// For a foreign key: whether rows may violate it (`NOT VALID`, `NOT ENFORCED`).
    #[serde(default)]
    not_valid: bool,
    /// For a foreign key: whether its last columns overlap instead of being equal (`PERIOD`).
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
    /// Absent if it is the same schema.
    schema: Option<Box<str>>,
    relation: Box<str>,
    columns: Vec<Box<str>>,
}

/// The number or name of a type.
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

/// Privileges as letters: `s`elect, `i`nsert, `u`pdate, `d`elete.
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
