//! A GraphQL document (GraphQL, section 2, "Language"), parsed and validated once.
//!
//! Only the module `juniper` uses the crate of that name. All other code works with the types of
//! this file.

mod coerce;
mod juniper;
mod limit;
mod overlap;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

pub(crate) use coerce::{Missing, Variables};
pub(crate) use juniper::Validator;
pub(crate) use limit::{check as check_limits, check_text};
pub(crate) use overlap::check as check_overlaps;

use tidegate_catalog::model::{ColumnId, RelationId, RelationshipId};

use crate::definition::OperationKind;
use crate::error::Location;
use crate::field_type::ValueObject;

/// A document that is valid for its schema.
#[derive(Debug)]
pub(crate) struct Document {
    /// The operations, in the order of the document.
    pub operations: Vec<Operation>,
    /// The fragments that the operations use, in the order of the document.
    pub fragments: Vec<Fragment>,
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub kind: OperationKind,
    pub name: Option<Box<str>>,
    pub variables: Vec<VariableDefinition>,
    /// The indexes of the variables, by name.
    pub numbers: BTreeMap<Box<str>, usize>,
    pub selection: Vec<Selection>,
    pub location: Location,
}

impl Operation {
    /// The index of the variable with this name.
    pub(crate) fn variable(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }
}

/// A named fragment. Its type condition is not stored, because the condition always holds: all
/// types are objects.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub selection: Vec<Selection>,
}

#[derive(Debug)]
pub(crate) struct VariableDefinition {
    pub name: Box<str>,
    pub r#type: InputType,
    pub default: Option<Value>,
    pub location: Location,
}

/// The type of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputType {
    Named(Box<str>),
    List(Box<InputType>),
    NonNull(Box<InputType>),
}

impl std::fmt::Display for InputType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::List(of) => write!(f, "[{of}]"),
            Self::NonNull(of) => write!(f, "{of}!"),
        }
    }
}

/// An item of a selection set.
#[derive(Debug)]
pub(crate) enum Selection {
    Field(Field),
    /// A fragment spread, by the fragment's index in [`Document::fragments`].
    Spread(usize, Vec<Condition>),
    Inline(Vec<Selection>, Vec<Condition>),
}

#[derive(Debug)]
pub(crate) struct Field {
    /// The response key: the alias, or else the name.
    pub key: Arc<str>,
    pub name: Box<str>,
    pub arguments: Vec<Argument>,
    pub conditions: Vec<Condition>,
    pub selection: Vec<Selection>,
    pub location: Location,
    /// The meaning of the field. The first request computes and caches it. It is the same for all
    /// requests, because the enclosing type is always the same object type.
    pub meaning: OnceLock<Meaning>,
}

/// The part of a row that a field returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// The name of the type of the row.
    Typename,
    Column(ColumnId),
    /// A column whose values are objects, and the type of these objects.
    Object(ColumnId, &'static ValueObject),
    /// The related row of a to-one relationship, and its relation.
    One(RelationshipId, RelationId),
    /// The related rows of a to-many relationship, and their relation.
    Many(RelationshipId, RelationId),
}

impl Field {
    /// The argument with this name; `None` if the document does not give it.
    pub(crate) fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments
            .iter()
            .find(|argument| &*argument.name == name)
    }
}

#[derive(Debug)]
pub(crate) struct Argument {
    pub name: Box<str>,
    pub value: Value,
    pub location: Location,
}

/// A directive `@skip` or `@include`.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The selection is executed if the argument `if` has this value: true for `@include`, false
    /// for `@skip`.
    pub wanted: bool,
    pub value: Value,
    /// The location of the directive in the document.
    pub location: Location,
}

/// A literal. Numbers keep the digits that were written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Number(Box<str>),
    String(Box<str>),
    Enum(Box<str>),
    Variable(Box<str>),
    List(Vec<Value>),
    Object(Vec<(Box<str>, Value)>),
}

impl Value {
    /// Calls `visit` with the name of each variable that the literal contains.
    pub(crate) fn variables(&self, visit: &mut impl FnMut(&str)) {
        self.visit_variables(&mut |name, _| visit(name));
    }

    /// Calls `visit` for each variable that the literal contains, with the name of the variable and
    /// the [`Value::Variable`] itself.
    pub(crate) fn visit_variables(&self, visit: &mut impl FnMut(&str, &Self)) {
        match self {
            Self::Variable(name) => visit(name, self),
            Self::List(items) => items.iter().for_each(|item| item.visit_variables(visit)),
            Self::Object(members) => members
                .iter()
                .for_each(|(_, value)| value.visit_variables(visit)),
            _ => {}
        }
    }
}
