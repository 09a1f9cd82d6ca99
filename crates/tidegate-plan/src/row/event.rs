//! Values of change events, in the form in which a query shows them.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::{ColumnId, Relation};
use tidegate_sql::{Column, Result, Type};

use super::cell::Cell;
use super::program::Form;
use super::shown::{Cast, cast};
use crate::operation::Part;

/// A column as a GraphQL event shows it: with the form that a query gives the same value.
#[derive(Debug)]
pub struct EventField {
    form: Arc<Form>,
    cast: Cast,
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
        }
    }

    /// A text that is the same for fields that show the same of a column.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::new();
        let Self { form, cast } = self;
        write!(name, "{form:?} {cast:?}").expect("a String takes everything");
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
    /// Appends a value as JSON. Tells whether GraphQL can show it: no NaN, no infinite number, no
    /// array of several dimensions; what was appended otherwise is of no use.
    ///
    /// # Errors
    /// [`tidegate_sql::Error::Internal`] when the bytes are no value of the column's type.
    pub fn write(&self, raw: &[u8], out: &mut BytesMut) -> Result<bool> {
        let mut flaws = Vec::new();
        let shown = self.cell.write(raw, &self.form, out, &mut flaws)?;
        Ok(shown && flaws.is_empty())
    }
}
