//! Committed changes of rows.

use std::sync::Arc;

use crate::cursor::Place;
use crate::pgoutput::{Tuple, Value};
use crate::shape::Shape;

/// What happened to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It was inserted.
    Insert,
    /// It was updated.
    Update,
    /// It was deleted.
    Delete,
}

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operations(u8);

impl Operations {
    /// All three.
    pub const ALL: Self = Self(7);

    /// This one and those before.
    #[must_use]
    pub const fn with(self, operation: Operation) -> Self {
        Self(self.0 | 1 << operation as u8)
    }

    /// Whether this one is among them.
    pub const fn has(self, operation: Operation) -> bool {
        self.0 & (1 << operation as u8) != 0
    }

    /// Those that are among them.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        [Operation::Insert, Operation::Update, Operation::Delete]
            .into_iter()
            .filter(move |operation| self.has(*operation))
    }
}

impl From<Operation> for Operations {
    fn from(operation: Operation) -> Self {
        Self::default().with(operation)
    }
}

/// What happened, where.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) place: Place,
    /// The lower half of the transaction's number.
    pub(crate) transaction: u32,
    pub(crate) shape: Arc<Shape>,
    pub(crate) event: Event,
}

/// What a change consists of.
#[derive(Debug)]
pub(crate) enum Event {
    /// The new row, or the old one of a DELETE.
    Row(Operation, Tuple),
    /// The table was emptied.
    Truncated,
}

impl Change {
    /// What it costs in memory, about.
    pub(crate) fn size(&self) -> usize {
        let row = match &self.event {
            Event::Row(_, tuple) => tuple.size(),
            Event::Truncated => 0,
        };
        row + size_of::<Self>() + 64
    }
}

/// The image of a row that a change brought.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) tuple: &'a Tuple,
}

impl<'a> Row<'a> {
    /// What the table is like.
    pub fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// The value in a column of the shape.
    pub fn value(&self, column: usize) -> Value<'a> {
        self.tuple.value(column)
    }
}
