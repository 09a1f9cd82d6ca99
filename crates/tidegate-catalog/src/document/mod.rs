//! The document that describes a schema as a role sees it, and how it becomes a [`Schema`].
//!
//! PostgreSQL writes it (see `load`), and tests write it by hand: a JSON object whose members are
//! those of the structures here. A type is the number of a built-in type or of an entry of `types`,
//! or the name of one of them (`"int4"`, `"text[]"`).

mod build;
mod link;
mod part;
mod type_tree;

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use crate::error::{Error, Result};
use crate::model::{Collation, Generated, Identity, Persistence, RelationKind, Schema};
use type_tree::TypeTree;

pub(crate) use build::schema;
pub(crate) use part::{Part, Types};

impl Schema {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] when the text is no such document, or names a type or a column that it
    /// does not have.
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
    /// The types: those that are not built in, at least.
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
    /// The element, the base or the subtype.
    inner: Option<TypeName>,
    /// Of an enum.
    #[serde(default)]
    labels: Vec<String>,
    /// Of a composite type.
    #[serde(default)]
    attributes: Vec<Attribute>,
    /// Of a domain.
    modifier: Option<i32>,
    /// Of a domain.
    #[serde(default)]
    not_null: bool,
    /// Of a domain.
    #[serde(default)]
    has_default: bool,
    /// Whether there are `min` and `max` of it.
    #[serde(default)]
    has_least: bool,
    /// Of a simple type that is not built in.
    comparisons: Option<ComparisonsEntry>,
}

/// How two values of a type can be compared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparisonsEntry {
    /// Those of `=`, `<>`, `<`, `<=`, `>` and `>=` that it has.
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
    /// Whether row level security is on and applies to the role.
    #[serde(default)]
    row_security: bool,
    /// Whether no policy calls more than built-in functions that cannot write.
    #[serde(default)]
    plain_policies: bool,
    comment: Option<Box<str>>,
    /// The rights on all columns.
    rights: Rights,
    columns: Vec<ColumnEntry>,
    #[serde(default)]
    constraints: Vec<ConstraintEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnEntry {
    name: Box<str>,
    /// One more than that of the column before it when absent.
    number: Option<i16>,
    r#type: TypeName,
    modifier: Option<i32>,
    #[serde(default)]
    not_null: bool,
    #[serde(default)]
    has_default: bool,
    generated: Option<Generated>,
    identity: Option<Identity>,
    collation: Option<Collation>,
    comment: Option<Box<str>>,
    /// The rights on this column, where they are not those on the relation.
    rights: Option<Rights>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstraintEntry {
    name: Box<str>,
    kind: ConstraintEntryKind,
    columns: Vec<Box<str>>,
    /// Of a foreign key.
    references: Option<ReferencesEntry>,
    /// Of a foreign key: rows may lack what they reference (`NOT VALID`, `NOT ENFORCED`).
    #[serde(default)]
    not_valid: bool,
    /// Of a foreign key: its last columns overlap instead of being equal (`PERIOD`).
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
    /// Absent when it is the same.
    schema: Option<Box<str>>,
    relation: Box<str>,
    columns: Vec<Box<str>>,
}

/// A type's number or name.
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

/// Rights as a text of letters: `s`elect, `i`nsert, `u`pdate, `d`elete.
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
        struct Letters;

        impl Visitor<'_> for Letters {
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

        deserializer.deserialize_str(Letters)
    }
}
