//! Decodes messages of the change log into changes. A transaction has committed before its first
//! message arrives. So changes are returned immediately, and not buffered until their transaction
//! ends.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_changelog::LogPosition;
use tidegate_values::Type;

use crate::decode::change::{ChangeKind, RowChange};
use crate::decode::pgoutput::{self, DecodeError, OldRow, PgOutputMessage, Relation, Tuple};
use crate::decode::schema::{RelationSchema, unknown_types};
use crate::event::cursor::EventPosition;
use crate::event::operation::Operation;

/// Decodes the messages of one stream. In each stream, PostgreSQL describes a table before the
/// first change of the table, so every stream needs a decoder of its own.
#[derive(Debug, Default)]
pub(crate) struct ChangeDecoder {
    schemas: HashMap<u32, Arc<RelationSchema>>,
    /// The position of the last change of the open transaction; `None` if no transaction is open.
    open: Option<EventPosition>,
    /// The lower 32 bits of the id of the most recently opened transaction.
    transaction_id: u32,
}

/// The decoded content of a message of the change log.
#[derive(Debug)]
pub(crate) enum Decoded {
    /// The message contains nothing that subscriptions need.
    Nothing,
    /// The message describes a table with unknown types, whose OIDs are listed. The calling
    /// function must resolve the types and call [`ChangeDecoder::describe`].
    Undescribed(Relation, Vec<u32>),
    /// The message describes a table. The next changes of the table have this schema.
    Described(Arc<RelationSchema>),
    Changed(RowChange),
    Truncated(Vec<RowChange>),
    /// A transaction ended. The log continues at this position.
    Committed(LogPosition),
}

/// Why a stream cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecoderError {
    /// A message is malformed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message is not allowed at this point.
    #[error("unexpected message in the log: {0}")]
    Order(&'static str),
}

impl ChangeDecoder {
    /// Whether a transaction is open. If so, no position may be confirmed to the stream until the
    /// transaction has ended.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The commit position of the open transaction; `None` if no transaction is open.
    pub(crate) fn open_commit(&self) -> Option<LogPosition> {
        self.open.map(|position| position.commit)
    }

    /// The lower 32 bits of the id of the most recently opened transaction.
    pub(crate) fn transaction_id(&self) -> u32 {
        self.transaction_id
    }

    /// Decodes the next message.
    ///
    /// # Errors
    ///
    /// If the message is invalid. No later message of the stream can be decoded then.
    pub(crate) fn decode(
        &mut self,
        message: &Bytes,
        types: &HashMap<u32, Type>,
    ) -> Result<Decoded, DecoderError> {
        match pgoutput::decode(message)? {
            PgOutputMessage::Begin {
                commit,
                transaction,
            } => {
                self.open = Some(EventPosition::before(commit));
                self.transaction_id = transaction;
                Ok(Decoded::Nothing)
            }
            PgOutputMessage::Commit { end, .. } => {
                self.open
                    .take()
                    .ok_or(DecoderError::Order("a commit without a begin"))?;
                Ok(Decoded::Committed(end))
            }
            PgOutputMessage::Relation(relation) => {
                let unknown = unknown_types(&relation, types);
                if unknown.is_empty() {
                    return Ok(Decoded::Described(self.describe(relation, types)));
                }
                Ok(Decoded::Undescribed(relation, unknown))
            }
            PgOutputMessage::Insert { relation, new } => self.row(relation, Operation::Insert, new),
            PgOutputMessage::Update {
                relation,
                old,
                mut new,
            } => {
                if let Some(OldRow::Row(old)) = &old {
                    new.fill_absent(old);
                }
                self.row(relation, Operation::Update, new)
            }
            PgOutputMessage::Delete { relation, old } => {
                let row = match old {
                    OldRow::Row(row) => row,
                    OldRow::Key(mut key) => {
                        let schema = self.schema(relation)?;
                        key.clear_unless(|at| {
                            schema
                                .columns
                                .get(at)
                                .is_some_and(|column| column.in_replica_identity)
                        });
                        key
                    }
                };
                self.row(relation, Operation::Delete, row)
            }
            PgOutputMessage::Truncate { relations } => {
                let changes = relations.iter().map(|relation| {
                    let schema = self.schema(*relation)?;
                    self.change(schema, ChangeKind::Truncated)
                });
                Ok(Decoded::Truncated(changes.collect::<Result<_, _>>()?))
            }
            PgOutputMessage::Origin
            | PgOutputMessage::Type { .. }
            | PgOutputMessage::Emitted { .. } => Ok(Decoded::Nothing),
        }
    }

    /// Adds the schema of the described table. `types` must contain the types of all columns,
    /// except built-in types and types that no longer exist.
    pub(crate) fn describe(
        &mut self,
        relation: Relation,
        types: &HashMap<u32, Type>,
    ) -> Arc<RelationSchema> {
        let schema = Arc::new(RelationSchema::new(relation, types));
        self.schemas.insert(schema.oid, schema.clone());
        schema
    }

    /// Replaces a schema by a copy whose columns have the types in `types`. Returns the copy.
    pub(crate) fn update_types(
        &mut self,
        schema: &RelationSchema,
        types: &HashMap<u32, Type>,
    ) -> Arc<RelationSchema> {
        let schema = Arc::new(schema.with_types(types));
        self.schemas.insert(schema.oid, schema.clone());
        schema
    }

    /// Replaces all schemas whose composite types differ from those in `types`.
    pub(crate) fn refresh_types(&mut self, types: &HashMap<u32, Type>) {
        for schema in self.schemas.values_mut() {
            if schema.has_changed_attributes(types) {
                *schema = Arc::new(schema.with_types(types));
            }
        }
    }

    fn row(
        &mut self,
        relation: u32,
        operation: Operation,
        tuple: Tuple,
    ) -> Result<Decoded, DecoderError> {
        let schema = self.schema(relation)?;
        if tuple.len() != schema.columns.len() {
            return Err(DecoderError::Order(
                "a row whose columns are not those of its table",
            ));
        }
        Ok(Decoded::Changed(
            self.change(schema, ChangeKind::Row(operation, tuple))?,
        ))
    }

    fn schema(&self, relation: u32) -> Result<Arc<RelationSchema>, DecoderError> {
        let schema = self.schemas.get(&relation).cloned();
        schema.ok_or(DecoderError::Order(
            "a change of a table without a description",
        ))
    }

    fn change(
        &mut self,
        schema: Arc<RelationSchema>,
        kind: ChangeKind,
    ) -> Result<RowChange, DecoderError> {
        let position = self.open.as_mut();
        let position = position.ok_or(DecoderError::Order("a change outside of a transaction"))?;
        position.index = position.index.saturating_add(1);
        let position = *position;
        Ok(RowChange {
            position,
            transaction_id: self.transaction_id,
            schema,
            kind,
        })
    }
}
