//! From messages to changes. A transaction is never gathered: it has committed before its first
//! message comes, so each change can go on at once, however many follow.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_sql::Type;
use tidegate_sql::log::LogPosition;

use crate::change::{Change, Event, Operation};
use crate::cursor::Place;
use crate::pgoutput::{DecodeError, Message, Old, Relation, Tuple, decode};
use crate::shape::{Shape, unknown_types};

/// Reads a stream of messages; one for each stream, because tables are described once per stream.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    shapes: HashMap<u32, Arc<Shape>>,
    /// The last change of the open transaction.
    open: Option<Place>,
    /// The lower half of its number.
    number: u32,
}

/// What a message means.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing to anybody.
    Nothing,
    /// A table is described by types that are not known: resolve them and call
    /// [`Assembler::describe`].
    Undescribed(Relation, Vec<u32>),
    /// A table is like this from here on.
    Described(Arc<Shape>),
    /// Changes, in order.
    Changed(Change),
    /// Tables were emptied.
    Truncated(Vec<Change>),
    /// A transaction ended; the log goes on here.
    Committed(LogPosition),
}

/// Why a stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StreamError {
    /// A message cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message stands where it cannot.
    #[error("the messages of the log do not fit each other: {0}")]
    Order(&'static str),
}

impl Assembler {
    /// Whether a transaction is open: positions inside must not be confirmed.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Where the open transaction commits, if one is open.
    pub(crate) fn open_commit(&self) -> Option<LogPosition> {
        self.open.map(|place| place.commit)
    }

    /// The lower half of the number of the transaction that is open, or was last.
    pub(crate) fn transaction(&self) -> u32 {
        self.number
    }

    /// Takes a message.
    pub(crate) fn take(
        &mut self,
        message: &Bytes,
        types: &HashMap<u32, Type>,
    ) -> Result<Step, StreamError> {
        match decode(message)? {
            Message::Begin {
                commit,
                transaction,
            } => {
                self.open = Some(Place::before(commit));
                self.number = transaction;
                Ok(Step::Nothing)
            }
            Message::Commit { end, .. } => {
                self.open
                    .take()
                    .ok_or(StreamError::Order("an end without a beginning"))?;
                Ok(Step::Committed(end))
            }
            Message::Relation(relation) => {
                let unknown = unknown_types(&relation, types);
                if unknown.is_empty() {
                    return Ok(Step::Described(self.describe(relation, types)));
                }
                Ok(Step::Undescribed(relation, unknown))
            }
            Message::Insert { relation, new } => self.row(relation, Operation::Insert, new),
            Message::Update {
                relation,
                old,
                mut new,
            } => {
                if let Some(Old::Row(old)) = &old {
                    new.fill(old);
                }
                self.row(relation, Operation::Update, new)
            }
            Message::Delete { relation, old } => {
                let row = match old {
                    Old::Row(row) => row,
                    Old::Key(mut key) => {
                        let shape = self.shape(relation)?;
                        key.keep(|at| shape.columns.get(at).is_some_and(|column| column.key));
                        key
                    }
                };
                self.row(relation, Operation::Delete, row)
            }
            Message::Truncate { relations } => {
                let changes = relations.iter().map(|relation| {
                    let shape = self.shape(*relation)?;
                    self.change(shape, Event::Truncated)
                });
                Ok(Step::Truncated(changes.collect::<Result<_, _>>()?))
            }
            Message::Origin | Message::Type { .. } | Message::Emitted { .. } => Ok(Step::Nothing),
        }
    }

    /// Takes the description of a table whose types are known now.
    pub(crate) fn describe(
        &mut self,
        relation: Relation,
        types: &HashMap<u32, Type>,
    ) -> Arc<Shape> {
        let shape = Arc::new(Shape::new(relation, types));
        self.shapes.insert(shape.oid, shape.clone());
        shape
    }

    /// Takes what a table is like now that more is known of its types.
    pub(crate) fn retype(&mut self, shape: &Shape, types: &HashMap<u32, Type>) -> Arc<Shape> {
        let shape = Arc::new(shape.retyped(types));
        self.shapes.insert(shape.oid, shape.clone());
        shape
    }

    /// Takes the attributes that types have now.
    pub(crate) fn renew(&mut self, types: &HashMap<u32, Type>) {
        for shape in self.shapes.values_mut() {
            if shape.has_other_attributes(types) {
                *shape = Arc::new(shape.retyped(types));
            }
        }
    }

    fn row(
        &mut self,
        relation: u32,
        operation: Operation,
        tuple: Tuple,
    ) -> Result<Step, StreamError> {
        let shape = self.shape(relation)?;
        if tuple.len() != shape.columns.len() {
            return Err(StreamError::Order(
                "a row with other columns than its table",
            ));
        }
        Ok(Step::Changed(
            self.change(shape, Event::Row(operation, tuple))?,
        ))
    }

    fn shape(&self, relation: u32) -> Result<Arc<Shape>, StreamError> {
        let shape = self.shapes.get(&relation).cloned();
        shape.ok_or(StreamError::Order(
            "a change of a table that was not described",
        ))
    }

    fn change(&mut self, shape: Arc<Shape>, event: Event) -> Result<Change, StreamError> {
        let place = self.open.as_mut();
        let place = place.ok_or(StreamError::Order("a change outside of a transaction"))?;
        place.index = place.index.saturating_add(1);
        let place = *place;
        Ok(Change {
            place,
            transaction: self.number,
            shape,
            event,
        })
    }
}
