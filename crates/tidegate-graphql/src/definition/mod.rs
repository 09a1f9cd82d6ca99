//! The GraphQL types of a catalog schema as values.
//!
//! From them come the validator's schema, introspection and SDL. Only the names of types are kept;
//! what a type says is made while one of these reads it, field by field: a schema of ten thousand
//! tables has a hundred thousand types.

mod aggregate;
mod named;
mod roots;
mod table;
mod value;

use std::borrow::Cow;
use std::fmt;

use tidegate_catalog::model::{Column, Relation};

pub(crate) use aggregate::{
    AGGREGATE_FUNCTIONS, aggregate_type, aggregated, function_type, group_columns,
};
pub(crate) use named::{TypeDefinition, Types};
pub(crate) use roots::{Root, Roots};

/// The field of a type that would have none: the type's name.
pub(crate) const EMPTY: &str = "_type";

/// A field of an object.
#[derive(Debug)]
pub(crate) struct FieldDefinition<'s> {
    /// Its name.
    pub name: Cow<'s, str>,
    /// Its description.
    pub description: Option<Cow<'s, str>>,
    /// What may be given to it.
    pub arguments: &'static [ArgumentDefinition],
    /// The type of its value.
    pub r#type: TypeReference<'s>,
}

/// An argument of a field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgumentDefinition {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub r#type: TypeReference<'static>,
    /// What it does.
    pub description: &'static str,
}

/// A use of a named type. Nothing in these schemas nests lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeReference<'s> {
    /// The named type.
    pub name: Cow<'s, str>,
    /// Whether it is a list of that.
    pub list: bool,
    /// Whether the elements of the list are never null.
    pub elements_not_null: bool,
    /// Whether the whole is never null.
    pub not_null: bool,
}

impl<'s> TypeReference<'s> {
    /// A value of the type, or null.
    pub(crate) const fn nullable(name: &'s str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            list: false,
            elements_not_null: false,
            not_null: false,
        }
    }

    /// A value of the type.
    pub(crate) const fn required(name: &'s str) -> Self {
        let mut reference = Self::nullable(name);
        reference.not_null = true;
        reference
    }

    /// A list of values of the type, each of which may be null.
    pub(crate) const fn list(name: &'s str) -> Self {
        let mut reference = Self::nullable(name);
        reference.list = true;
        reference
    }

    /// A list of values of the type.
    pub(crate) const fn list_of_required(name: &'s str) -> Self {
        let mut reference = Self::list(name);
        reference.elements_not_null = true;
        reference
    }

    /// The type without its outermost `!` or brackets.
    pub(crate) fn unwrapped(mut self) -> Self {
        if self.not_null {
            self.not_null = false;
        } else {
            self.list = false;
            self.not_null = std::mem::take(&mut self.elements_not_null);
        }
        self
    }
}

impl fmt::Display for TypeReference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bang = |yes: bool| if yes { "!" } else { "" };
        if self.list {
            write!(f, "[{}{}]", self.name, bang(self.elements_not_null))?;
        } else {
            f.write_str(&self.name)?;
        }
        f.write_str(bang(self.not_null))
    }
}

/// The fields of a type, made one after the other.
pub(crate) type Fields<'s> = Box<dyn Iterator<Item = FieldDefinition<'s>> + Send + 's>;

/// Fields for a type that would have none, which GraphQL forbids.
fn never_empty<'s>(fields: impl Iterator<Item = FieldDefinition<'s>> + Send + 's) -> Fields<'s> {
    let mut fields = fields.peekable();
    if fields.peek().is_some() {
        return Box::new(fields);
    }
    Box::new(std::iter::once(FieldDefinition {
        name: EMPTY.into(),
        description: Some("The type's name: the role may read nothing else here.".into()),
        arguments: &[],
        r#type: TypeReference::required("String"),
    }))
}

/// A comment of the database, and the name there of what is called otherwise here.
fn describe<'s>(comment: Option<&'s str>, renamed: Option<&str>) -> Option<Cow<'s, str>> {
    let comment = comment.filter(|comment| !comment.is_empty());
    let Some(name) = renamed else {
        return comment.map(Cow::from);
    };
    let name = format!("Called \"{}\" in the database.", name.replace('"', "\"\""));
    Some(match comment {
        Some(comment) => format!("{comment}\n{name}").into(),
        None => name.into(),
    })
}

/// What a relation's type says: its comment, and the relation's name where more than its letter
/// case and underscores has changed.
fn describe_relation(relation: &Relation) -> Option<Cow<'_, str>> {
    let is_plain = relation
        .name
        .replace('_', "")
        .eq_ignore_ascii_case(&relation.type_name);
    let renamed = (!is_plain).then_some(&*relation.name);
    describe(relation.comment.as_deref(), renamed)
}

/// What a column's field says, behind `comment`.
fn describe_column<'s>(comment: Option<&'s str>, column: &Column) -> Option<Cow<'s, str>> {
    describe(
        comment,
        (column.field != column.name).then_some(&*column.name),
    )
}
