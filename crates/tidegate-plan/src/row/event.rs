//! Writes the values of change events in the form that they have in a query.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::{ColumnId, Relation};
use tidegate_sql::Result;
use tidegate_values::{Column, Type};

use super::cell::Cell;
use super::program::OutputForm;
use super::projection::{Cast, cast};
use crate::FieldError;
use crate::operation::Subfield;

/// A column of a GraphQL event, in the form that it has in a query.
#[derive(Debug)]
pub struct EventField {
    form: Arc<OutputForm>,
    cast: Cast,
    not_null: bool,
}

impl EventField {
    /// A field for a column of a relation. `parts` are the selected subfields of a column with
    /// ranges or geometric values; `None` for all other columns.
    #[must_use]
    pub fn new(relation: &Relation, column: ColumnId, parts: Option<Vec<Subfield>>) -> Self {
        let form = match parts {
            Some(parts) => OutputForm::Parts(parts.into()),
            None if relation.is_key(column) => OutputForm::Id,
            None => OutputForm::Value,
        };
        Self {
            form: Arc::new(form),
            cast: cast(relation, column),
            not_null: relation.column(column).not_null,
        }
    }

    /// Whether the field's GraphQL type is non-null. If so, a field error makes the whole row null.
    #[must_use]
    pub fn not_null(&self) -> bool {
        self.not_null
    }

    /// A name of the output form. Two fields of the same column have equal names if they write the
    /// same text, and different names otherwise.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::new();
        let Self {
            form,
            cast,
            not_null,
        } = self;
        write!(name, "{form:?} {cast:?} {not_null}").expect("a String takes everything");
        name
    }

    /// A writer for values of the column as the change log has them. `column` describes these
    /// values. If their type has no GraphQL form, PostgreSQL's text of each value is written as a
    /// string, as in a query.
    #[must_use]
    pub fn writer(&self, mut column: Column) -> EventWriter {
        match self.cast {
            Cast::None => {}
            Cast::Text => column.r#type = Type::TEXT,
            Cast::TextArray => column.r#type = Type::TEXT_ARRAY,
        }
        EventWriter {
            cell: Cell::new(&column, &self.form),
            form: self.form.clone(),
        }
    }
}

/// Writes the values of one field.
#[derive(Debug)]
pub struct EventWriter {
    cell: Cell,
    form: Arc<OutputForm>,
}

impl EventWriter {
    /// Appends a value as JSON. Returns whether GraphQL can represent the value; if not, the caller
    /// must discard the appended text. Adds to `field_errors` an error for each part that cannot be
    /// represented (NaN, an infinity, an array with several dimensions), with its path within the
    /// value.
    ///
    /// # Errors
    ///
    /// [`tidegate_sql::Error::Internal`] if the bytes are not a value of the column's type.
    pub fn write(
        &self,
        raw: &[u8],
        out: &mut BytesMut,
        field_errors: &mut Vec<FieldError>,
    ) -> Result<bool> {
        let mut found = Vec::new();
        let shown = self.cell.write(raw, &self.form, out, &mut found)?;
        field_errors.extend(
            found
                .into_iter()
                .map(|(path, problem)| FieldError { path, problem }),
        );
        Ok(shown)
    }
}
