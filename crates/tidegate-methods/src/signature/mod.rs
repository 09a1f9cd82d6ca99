//! What PostgreSQL infers of a method: the types of its parameters and of its result's columns.

mod form;
mod not_null;

pub use form::Form;
pub use not_null::{NotNull, Origin};

use serde::{Deserialize, Serialize};
use tidegate_sql::{Description, Statement};
use tidegate_values::Type;
use tidegate_values::output::{column_names, shown_type};

use crate::json;

/// The types of a method, from a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The placeholders in the order of their first use.
    pub parameters: Vec<Field>,
    /// The result's columns in order, by the names that callers see; empty for a statement that
    /// returns no rows.
    pub columns: Vec<Field>,
}

/// A parameter or a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// The placeholder's or column's name.
    pub name: String,
    /// The type as `schema` shows it: of an array that of its elements, of a domain what it is
    /// made of.
    pub r#type: String,
    /// Whether it is an array.
    pub array: bool,
    /// Whether a column may hold NULL. False for parameters, which the interfaces show without
    /// null; a call may give null for any of them.
    pub nullable: bool,
    /// The JSON form of its values.
    pub form: Form,
}

impl Signature {
    /// Infers the signature of a statement from PostgreSQL's description of it.
    ///
    /// A column is not nullable only when it shows a column of `not_null` and nothing in the
    /// statement's text could make a NULL of it; see [`NotNull::candidates`].
    pub fn infer(statement: &Statement, description: &Description, not_null: &NotNull) -> Self {
        let safe = not_null::shows_columns_as_they_are(statement);
        let parameters = statement.placeholders().iter().zip(&description.parameters);
        let names = column_names(&description.columns);
        let columns = names.into_iter().zip(&description.columns);
        Self {
            parameters: parameters
                .map(|(name, r#type)| Field::new(name.clone(), r#type, false))
                .collect(),
            columns: columns
                .map(|(name, column)| {
                    let origin = column.origin.filter(|_| safe);
                    let nullable = !origin.is_some_and(|origin| not_null.contains(origin));
                    Field::new(name.into_owned(), &column.r#type, nullable)
                })
                .collect(),
        }
    }

    /// The text in which a store keeps the signature.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Reads what [`to_json`](Self::to_json) wrote; `None` when another version wrote it in
    /// another form, so that a dry run is due again.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl Field {
    /// A field of a type.
    pub fn new(name: String, r#type: &Type, nullable: bool) -> Self {
        let (shown, array) = shown_type(r#type);
        Self {
            name,
            r#type: shown.to_owned(),
            array,
            nullable,
            form: Form::of(r#type),
        }
    }
}
