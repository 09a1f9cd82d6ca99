//! Committed changes of rows.

use std::sync::Arc;

use crate::decode::pgoutput::{ColumnValue, Tuple};
use crate::decode::schema::RelationSchema;
use crate::event::cursor::EventPosition;
use crate::event::operation::Operation;

/// A change of a row or of a table.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub(crate) position: EventPosition,
    /// The lower 32 bits of the transaction id.
    pub(crate) transaction_id: u32,
    pub(crate) schema: Arc<RelationSchema>,
    pub(crate) kind: ChangeKind,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// A row was changed. The tuple is the new row; for a DELETE it is the old row.
    Row(Operation, Tuple),
    Truncated,
}

impl RowChange {
    /// The approximate memory of the change in bytes.
    pub(crate) fn size(&self) -> usize {
        let row = match &self.kind {
            ChangeKind::Row(_, tuple) => tuple.size(),
            ChangeKind::Truncated => 0,
        };
        row + size_of::<Self>() + 64
    }
}

/// The row image of a change.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(crate) schema: &'a RelationSchema,
    pub(crate) tuple: &'a Tuple,
}

impl<'a> Row<'a> {
    /// The schema of the table.
    pub fn schema(&self) -> &'a RelationSchema {
        self.schema
    }

    /// The value of the column with this index in the schema.
    pub fn value(&self, column: usize) -> ColumnValue<'a> {
        self.tuple.value(column)
    }
}
