//! Values of change events, in the form in which a query shows them.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::{ColumnId, Relation};
use tidegate_sql::Result;
use tidegate_values::{Column, Type};

use super::cell::Cell;
use super::program::Form;
use super::shown::{Cast, cast};
use crate::Flaw;
use crate::operation::Part;

/// A column as a GraphQL event shows it: with the form that a query gives the same value.
#[derive(Debug)]
pub struct EventField {
    form: Arc<Form>,
    cast: Cast,
    not_null: bool,
}

impl EventField {
    /// A column of a relation, or `parts` of the values of one that holds ranges or shapes.
    #[must_use]
    pub fn new(relation: &Relation, column: ColumnId, parts: Option<Vec<Part>>) -> Self {
        let form = match parts {
            Some(parts) => Form::Parts(parts.into()),
            None if relation.is_key(column) => Form::Id,
            None => Form::Value,
        };
        Self {
            form: Arc::new(form),
            cast: cast(relation, column),
            not_null: relation.column(column).not_null,
        }
    }

    /// Whether its GraphQL type is non-null, so that a flaw takes the whole row.
    #[must_use]
    pub fn not_null(&self) -> bool {
        self.not_null
    }

    /// A text that is the same for fields that show the same of a column.
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

    /// A writer for values of the column as the log tells them. A type that GraphQL has no form
    /// for is told as PostgreSQL's own text, as a query asks for it.
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
    form: Arc<Form>,
}

impl EventWriter {
    /// Appends a value as JSON. Tells whether GraphQL can show it; what was appended otherwise is
    /// of no use. `flaws` takes what it cannot show (NaN, an infinite number, an array of several
    /// dimensions), also inside of the value, with the path from the value on.
    ///
    /// # Errors
    /// [`tidegate_sql::Error::Internal`] when the bytes are no value of the column's type.
    pub fn write(&self, raw: &[u8], out: &mut BytesMut, flaws: &mut Vec<Flaw>) -> Result<bool> {
        let mut found = Vec::new();
        let shown = self.cell.write(raw, &self.form, out, &mut found)?;
        flaws.extend(
            found
                .into_iter()
                .map(|(path, problem)| Flaw { path, problem }),
        );
        Ok(shown)
    }
}
