//! The messages of pgoutput (PostgreSQL, "Logical Replication Message Formats") in version 1 of its
//! protocol. In this version PostgreSQL sends whole transactions after they have committed. Version
//! 2 is not used, because PostgreSQL may then also send transactions that can still roll back.
//! Subscriptions must not see these.

mod reader;
mod tuple;

use bytes::Bytes;
use tidegate_changelog::LogPosition;

use self::reader::MessageReader;
pub use self::tuple::{ColumnValue, Tuple};

/// A message of pgoutput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PgOutputMessage {
    /// A transaction begins.
    Begin {
        /// The position of the commit. It is greater than the position of the previous
        /// transaction's commit.
        commit: LogPosition,
        /// The lower 32 bits of the transaction id.
        transaction: u32,
    },
    /// A transaction ends.
    Commit {
        /// The position of the commit.
        commit: LogPosition,
        /// The position after the end of the transaction.
        end: LogPosition,
    },
    /// The origin of the transaction, on a server that replicates from another one.
    Origin,
    /// The definition of a table. It applies to the table's changes after this message.
    Relation(Relation),
    /// A type that is not built in.
    Type {
        /// The OID of the type.
        oid: u32,
    },
    /// A row was inserted.
    Insert {
        /// The OID of the table.
        relation: u32,
        /// The row.
        new: Tuple,
    },
    /// A row was updated.
    Update {
        /// The OID of the table.
        relation: u32,
        /// The old row, as far as the change log contains it; `None` if the log contains no part of
        /// the old row.
        old: Option<OldRow>,
        /// The new row.
        new: Tuple,
    },
    /// A row was deleted.
    Delete {
        /// The OID of the table.
        relation: u32,
        /// The old row, as far as the change log contains it.
        old: OldRow,
    },
    /// Tables were truncated.
    Truncate {
        /// The OIDs of the tables.
        relations: Box<[u32]>,
    },
    /// A message of `pg_logical_emit_message`. The service does not request such messages, and
    /// ignores them.
    Emitted {
        /// The content.
        content: Bytes,
    },
}

/// An old row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OldRow {
    /// A row with only the columns of the replica identity. The message contains NULL for the other
    /// columns.
    Key(Tuple),
    /// The whole row.
    Row(Tuple),
}

/// The definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The OID of the table.
    pub oid: u32,
    /// The name of the schema.
    pub schema: Box<str>,
    /// The name of the table.
    pub name: Box<str>,
    /// Whether the replica identity is the whole row (FULL).
    pub full_replica_identity: bool,
    /// The columns, in the order of a row's values.
    pub columns: Box<[RelationColumn]>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn {
    /// The name of the column.
    pub name: Box<str>,
    /// The OID of the type.
    pub r#type: u32,
    /// Whether the column belongs to the replica identity.
    pub in_replica_identity: bool,
}

/// The reason why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is too short.
    #[error("the message is too short")]
    Truncated,
    /// Bytes follow the message.
    #[error("there are bytes after the message")]
    Trailing,
    /// A value is in binary format, which was not requested.
    #[error("the message has a value in binary form")]
    Binary,
    /// A byte that specifies the kind of an element, for example of a row, has an unknown value.
    #[error("unknown kind of {what}: `{}`", kind.escape_ascii())]
    Unknown {
        /// The element of the protocol whose kind the byte specifies.
        what: &'static str,
        /// The value of the byte.
        kind: u8,
    },
}

/// Decodes a message. The values of rows are not copied but refer to `message`.
///
/// # Errors
///
/// If the bytes are not a valid message.
pub fn decode(message: &Bytes) -> Result<PgOutputMessage, DecodeError> {
    let mut reader = MessageReader::new(message);
    let decoded = match reader.u8()? {
        b'B' => {
            let commit = LogPosition(reader.u64()?);
            let _clock = reader.u64()?;
            let transaction = reader.u32()?;
            PgOutputMessage::Begin {
                commit,
                transaction,
            }
        }
        b'C' => {
            let _flags = reader.u8()?;
            let (commit, end) = (LogPosition(reader.u64()?), LogPosition(reader.u64()?));
            let _clock = reader.u64()?;
            PgOutputMessage::Commit { commit, end }
        }
        b'O' => {
            reader.u64()?;
            reader.text()?;
            PgOutputMessage::Origin
        }
        b'R' => PgOutputMessage::Relation(relation(&mut reader)?),
        b'Y' => {
            let oid = reader.u32()?;
            reader.text()?;
            reader.text()?;
            PgOutputMessage::Type { oid }
        }
        b'I' => {
            let relation = reader.u32()?;
            expect(&mut reader, b'N')?;
            let new = Tuple::read(message, &mut reader)?;
            PgOutputMessage::Insert { relation, new }
        }
        b'U' => update(message, &mut reader)?,
        b'D' => {
            let relation = reader.u32()?;
            let kind = reader.u8()?;
            let old = old(message, &mut reader, kind)?;
            PgOutputMessage::Delete { relation, old }
        }
        b'T' => truncate(&mut reader)?,
        b'M' => {
            let _flags = reader.u8()?;
            reader.u64()?;
            reader.text()?;
            let length = reader.u32()?;
            let content = reader.bytes(length as usize)?;
            PgOutputMessage::Emitted { content }
        }
        kind => {
            return Err(DecodeError::Unknown {
                what: "message",
                kind,
            });
        }
    };
    reader.end()?;
    Ok(decoded)
}

fn relation(reader: &mut MessageReader<'_>) -> Result<Relation, DecodeError> {
    let oid = reader.u32()?;
    let (schema, name) = (reader.text()?, reader.text()?);
    let full_replica_identity = reader.u8()? == b'f';
    let count = reader.u16()?;
    let mut columns = Vec::with_capacity(count.into());
    for _ in 0..count {
        let in_replica_identity = reader.u8()? & 1 == 1;
        let (name, r#type) = (reader.text()?, reader.u32()?);
        let _modifier = reader.i32()?;
        columns.push(RelationColumn {
            name,
            r#type,
            in_replica_identity,
        });
    }
    // PostgreSQL sends an empty name for the schema `pg_catalog`.
    let schema = if schema.is_empty() {
        "pg_catalog".into()
    } else {
        schema
    };
    Ok(Relation {
        oid,
        schema,
        name,
        full_replica_identity,
        columns: columns.into(),
    })
}

fn update(message: &Bytes, reader: &mut MessageReader<'_>) -> Result<PgOutputMessage, DecodeError> {
    let relation = reader.u32()?;
    let old = match reader.u8()? {
        b'N' => None,
        kind => {
            let old = old(message, reader, kind)?;
            expect(reader, b'N')?;
            Some(old)
        }
    };
    let new = Tuple::read(message, reader)?;
    Ok(PgOutputMessage::Update { relation, old, new })
}

fn old(message: &Bytes, reader: &mut MessageReader<'_>, kind: u8) -> Result<OldRow, DecodeError> {
    match kind {
        b'K' => Ok(OldRow::Key(Tuple::read(message, reader)?)),
        b'O' => Ok(OldRow::Row(Tuple::read(message, reader)?)),
        kind => Err(DecodeError::Unknown {
            what: "old row",
            kind,
        }),
    }
}

fn truncate(reader: &mut MessageReader<'_>) -> Result<PgOutputMessage, DecodeError> {
    let count = reader.u32()?;
    let _options = reader.u8()?;
    let mut relations = Vec::new();
    for _ in 0..count {
        relations.push(reader.u32()?);
    }
    Ok(PgOutputMessage::Truncate {
        relations: relations.into(),
    })
}

fn expect(reader: &mut MessageReader<'_>, wanted: u8) -> Result<(), DecodeError> {
    match reader.u8()? {
        kind if kind == wanted => Ok(()),
        kind => Err(DecodeError::Unknown {
            what: "new row",
            kind,
        }),
    }
}
