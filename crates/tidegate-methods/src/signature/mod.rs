//! The signature of a method: the types of its parameters and result columns, as PostgreSQL infers
//! them.

mod form;
mod not_null;

pub use form::ValueForm;
pub use not_null::{ColumnOrigin, NotNull};

use serde::{Deserialize, Serialize};
use tidegate_sql::{Description, Statement};
use tidegate_values::Type;
use tidegate_values::output::{column_names, shown_type};

use crate::json;

/// The types that a dry run inferred for a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The placeholders of the statement, in the order of their first use.
    pub parameters: Vec<SignatureField>,
    /// The columns of the result in order, by the names that callers see. There are none for a
    /// statement that returns no rows.
    pub columns: Vec<SignatureField>,
}

/// A parameter or a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureField {
    /// The name of the placeholder or column.
    pub name: String,
    /// The name of the type, as in the member `schema` of a result. For an array, it is the name of
    /// the element type; for a domain, the name of the base type.
    pub r#type: String,
    /// Whether the type is an array.
    pub array: bool,
    /// Whether a column may be NULL. It is false for parameters: a call may pass null for any of
    /// them, but the generated interfaces do not show this.
    pub nullable: bool,
    /// The form of the values in JSON.
    pub form: ValueForm,
}

impl Signature {
    /// Infers the signature of a statement from PostgreSQL's description.
    ///
    /// A column is non-nullable only if it shows a table column of `not_null` unchanged, and the
    /// statement has no keyword that may add NULLs; see [`NotNull::candidates`].
    pub fn infer(statement: &Statement, description: &Description, not_null: &NotNull) -> Self {
        let safe = not_null::shows_columns_as_they_are(statement);
        let parameters = statement.placeholders().iter().zip(&description.parameters);
        let names = column_names(&description.columns);
        let columns = names.into_iter().zip(&description.columns);
        Self {
            parameters: parameters
                .map(|(name, r#type)| SignatureField::new(name.clone(), r#type, false))
                .collect(),
            columns: columns
                .map(|(name, column)| {
                    let origin = column.origin.filter(|_| safe);
                    let nullable = !origin.is_some_and(|origin| not_null.contains(origin));
                    SignatureField::new(name.into_owned(), &column.r#type, nullable)
                })
                .collect(),
        }
    }

    /// The signature as JSON text, for a store.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Parses the result of [`to_json`](Self::to_json). `None` if another version of this service
    /// wrote it in another form; a dry run is then needed.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl SignatureField {
    /// The field for a parameter or column of this type.
    pub fn new(name: String, r#type: &Type, nullable: bool) -> Self {
        let (shown, array) = shown_type(r#type);
        Self {
            name,
            r#type: shown.to_owned(),
            array,
            nullable,
            form: ValueForm::of(r#type),
        }
    }
}
