//! The GraphQL types of a catalog schema as values.
//!
//! From them come the validator's schema, introspection and SDL. They are made when one of these
//! is needed and dropped again: a schema of ten thousand tables has a hundred thousand of them.

mod aggregate;
mod roots;
mod table;
mod value;

use std::borrow::Cow;
use std::fmt;

use tidegate_catalog::model::Schema;

pub(crate) use aggregate::{
    AGGREGATE_FUNCTIONS, aggregate_type, aggregated, function_type, group_columns,
};
pub(crate) use roots::{Root, Roots};

/// The field of a type that would have none: the type's name.
pub(crate) const EMPTY: &str = "_type";

/// A named type.
#[derive(Debug)]
pub(crate) struct TypeDefinition<'s> {
    /// Its name.
    pub name: Cow<'s, str>,
    /// Its description.
    pub description: Option<Cow<'s, str>>,
    /// What it is.
    pub kind: TypeKind<'s>,
}

/// What a named type is.
#[derive(Debug)]
pub(crate) enum TypeKind<'s> {
    /// A scalar; `true` for those of GraphQL itself.
    Scalar(bool),
    /// An object with its fields.
    Object(Vec<FieldDefinition<'s>>),
}

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

/// All named types of a schema, ordered by name.
#[derive(Debug)]
pub(crate) struct Definitions<'s> {
    /// The types.
    pub types: Vec<TypeDefinition<'s>>,
    /// Whether there is a type `Mutation`.
    pub mutation: bool,
    /// Whether there is a type `Subscription`.
    pub subscription: bool,
}

impl<'s> Definitions<'s> {
    /// Defines the types of a schema.
    pub(crate) fn of(schema: &'s Schema, roots: &Roots) -> Self {
        let mut types = value::definitions();
        for (_, relation) in schema.relations() {
            types.push(table::definition(schema, relation));
            if relation.rights.select {
                aggregate::define(relation, &mut types);
            }
        }
        let [query, mutation, subscription] = roots.definitions(schema);
        let (has_mutation, has_subscription) = (mutation.is_some(), subscription.is_some());
        types.extend(query);
        types.extend(mutation);
        types.extend(subscription);
        types.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Self {
            types,
            mutation: has_mutation,
            subscription: has_subscription,
        }
    }

    /// Finds a type by its name.
    pub(crate) fn find(&self, name: &str) -> Option<&TypeDefinition<'s>> {
        let at = self
            .types
            .binary_search_by(|known| (*known.name).cmp(name))
            .ok()?;
        Some(&self.types[at])
    }
}

/// Fields for a type that would have none, which GraphQL forbids.
fn never_empty(mut fields: Vec<FieldDefinition<'_>>) -> Vec<FieldDefinition<'_>> {
    if fields.is_empty() {
        fields.push(FieldDefinition {
            name: EMPTY.into(),
            description: Some("The type's name: the role may read nothing else here.".into()),
            arguments: &[],
            r#type: TypeReference::required("String"),
        });
    }
    fields
}

fn text(comment: Option<&str>) -> Option<Cow<'_, str>> {
    comment.filter(|comment| !comment.is_empty()).map(Cow::from)
}
