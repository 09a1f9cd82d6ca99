//! Defines the GraphQL types of a schema of the catalog.
//!
//! The validator's schema, introspection and the SDL are made from these definitions. Only the
//! names of types are stored, because a schema of ten thousand tables has a hundred thousand types.
//! The fields of a type are generated each time they are needed.

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

/// The name of the only field of a type that would otherwise have no field. The value of the field
/// is the name of the type.
pub(crate) const EMPTY: &str = "_type";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    /// The operation reads rows.
    Query,
    /// The operation writes rows.
    Mutation,
    /// The operation receives change events.
    Subscription,
}

impl OperationKind {
    /// The name of the root type for the kind.
    pub(crate) const fn type_name(self) -> &'static str {
        match self {
            Self::Query => "Query",
            Self::Mutation => "Mutation",
            Self::Subscription => "Subscription",
        }
    }
}

/// The kind of change that a subscription reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The change is an INSERT.
    Added,
    /// The change is an UPDATE.
    Updated,
    /// The change is a DELETE.
    Deleted,
}

impl ChangeKind {
    pub(crate) const ALL: [Self; 3] = [Self::Added, Self::Updated, Self::Deleted];

    /// The suffix of the names of root fields that report this kind of change.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Updated => "Updated",
            Self::Deleted => "Deleted",
        }
    }

    pub(crate) const fn event(self) -> &'static str {
        match self {
            Self::Added => "New rows",
            Self::Updated => "Changed rows, as they are now,",
            Self::Deleted => "Removed rows, as they were,",
        }
    }
}

#[derive(Debug)]
pub(crate) struct FieldDefinition<'s> {
    pub name: Cow<'s, str>,
    pub description: Option<Cow<'s, str>>,
    pub arguments: &'static [ArgumentDefinition],
    pub r#type: TypeReference<'s>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgumentDefinition {
    pub name: &'static str,
    pub r#type: TypeReference<'static>,
    pub description: &'static str,
}

/// A reference to a named type, or to a list of values of a named type. The API has no lists of
/// lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TypeReference<'s> {
    pub name: Cow<'s, str>,
    /// Whether the reference is to a list of the type.
    pub list: bool,
    /// Whether the elements of the list are non-null.
    pub elements_not_null: bool,
    /// Whether the value is non-null. If it is a list, its elements may still be null: see
    /// `elements_not_null`.
    pub not_null: bool,
}

impl<'s> TypeReference<'s> {
    /// A reference to a nullable value of the type.
    pub(crate) const fn nullable(name: &'s str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            list: false,
            elements_not_null: false,
            not_null: false,
        }
    }

    /// A reference to a non-null value of the type.
    pub(crate) const fn required(name: &'s str) -> Self {
        let mut reference = Self::nullable(name);
        reference.not_null = true;
        reference
    }

    /// A reference to a list of nullable values of the type.
    pub(crate) const fn list(name: &'s str) -> Self {
        let mut reference = Self::nullable(name);
        reference.list = true;
        reference
    }

    /// A reference to a list of non-null values of the type.
    pub(crate) const fn list_of_required(name: &'s str) -> Self {
        let mut reference = Self::list(name);
        reference.elements_not_null = true;
        reference
    }

    /// The reference without its outermost wrapper: the `!` if there is one, and otherwise the
    /// list.
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

/// The fields of a type, generated one by one.
pub(crate) type FieldIter<'s> = Box<dyn Iterator<Item = FieldDefinition<'s>> + Send + 's>;

/// Adds the field [`EMPTY`] if there are no other fields, because GraphQL forbids a type without
/// fields.
fn with_placeholder<'s>(
    fields: impl Iterator<Item = FieldDefinition<'s>> + Send + 's,
) -> FieldIter<'s> {
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

/// A description that consists of a comment and of `renamed`, which is the name in the database if
/// it differs from the GraphQL name. `None` if there is neither.
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

/// The description of a relation's type: the comment, and the relation's name if the type name
/// differs by more than case and underscores.
fn describe_relation(relation: &Relation) -> Option<Cow<'_, str>> {
    let is_plain = relation
        .name
        .replace('_', "")
        .eq_ignore_ascii_case(&relation.type_name);
    let renamed = (!is_plain).then_some(&*relation.name);
    describe(relation.comment.as_deref(), renamed)
}

/// The description of a column's field: `comment`, and the column's name if the field name differs
/// from it.
fn describe_column<'s>(comment: Option<&'s str>, column: &Column) -> Option<Cow<'s, str>> {
    describe(
        comment,
        (column.field != column.name).then_some(&*column.name),
    )
}
