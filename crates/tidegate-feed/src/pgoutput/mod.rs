//! The messages of pgoutput (PostgreSQL, "Logical Replication Message Formats"), protocol
//! version 1: whole transactions, when they commit. Version 2 would bring transactions that may
//! still roll back, which nobody may see.

mod reader;
mod tuple;

use bytes::Bytes;
use tidegate_sql::log::LogPosition;

use self::reader::Reader;
pub use self::tuple::{Tuple, Value};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A transaction begins.
    Begin {
        /// Where its commit is in the log; these positions rise.
        commit: LogPosition,
        /// Its number.
        transaction: u32,
    },
    /// A transaction ends.
    Commit {
        /// Where its commit is.
        commit: LogPosition,
        /// Where the log goes on behind it.
        end: LogPosition,
    },
    /// Where the transaction came from, on a server that replicates from another.
    Origin,
    /// What a table is like from here on.
    Relation(Relation),
    /// A type that is not built in.
    Type {
        /// Its number.
        oid: u32,
    },
    /// A new row.
    Insert {
        /// The table's number.
        relation: u32,
        /// The row.
        new: Tuple,
    },
    /// A changed row.
    Update {
        /// The table's number.
        relation: u32,
        /// What is told of the old row.
        old: Option<Old>,
        /// The new row.
        new: Tuple,
    },
    /// A row that is gone.
    Delete {
        /// The table's number.
        relation: u32,
        /// What is told of it.
        old: Old,
    },
    /// Tables that were emptied.
    Truncate {
        /// Their numbers.
        relations: Box<[u32]>,
    },
    /// What somebody wrote to the log by `pg_logical_emit_message`; not asked for.
    Emitted {
        /// The bytes.
        content: Bytes,
    },
}

/// An old row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old {
    /// The columns of the replica identity; the others are NULL.
    Key(Tuple),
    /// The whole row.
    Row(Tuple),
}

/// What a table is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Its number in `pg_class`.
    pub oid: u32,
    /// Its schema.
    pub schema: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Whether its replica identity is the whole row.
    pub full: bool,
    /// Its columns, in the order of the values.
    pub columns: Box<[RelationColumn]>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn {
    /// Its name.
    pub name: Box<str>,
    /// The number of its type.
    pub r#type: u32,
    /// Whether it belongs to the replica identity.
    pub key: bool,
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It ends too early.
    #[error("the message ends too early")]
    Truncated,
    /// Something follows its end.
    #[error("something follows the message")]
    Trailing,
    /// A value in binary form, which was not asked for.
    #[error("the message holds a value in binary form")]
    Binary,
    /// A byte that names nothing.
    #[error("`{}` is no kind of {what}", kind.escape_ascii())]
    Unknown {
        /// Of what.
        what: &'static str,
        /// The byte.
        kind: u8,
    },
}

/// Reads a message. Values stay where they are.
pub fn decode(message: &Bytes) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(message);
    let decoded = match reader.u8()? {
        b'B' => {
            let commit = LogPosition(reader.u64()?);
            let _clock = reader.u64()?;
            let transaction = reader.u32()?;
            Message::Begin {
                commit,
                transaction,
            }
        }
        b'C' => {
            let _flags = reader.u8()?;
            let (commit, end) = (LogPosition(reader.u64()?), LogPosition(reader.u64()?));
            let _clock = reader.u64()?;
            Message::Commit { commit, end }
        }
        b'O' => {
            reader.u64()?;
            reader.text()?;
            Message::Origin
        }
        b'R' => Message::Relation(relation(&mut reader)?),
        b'Y' => {
            let oid = reader.u32()?;
            reader.text()?;
            reader.text()?;
            Message::Type { oid }
        }
        b'I' => {
            let relation = reader.u32()?;
            expect(&mut reader, b'N')?;
            let new = Tuple::read(message, &mut reader)?;
            Message::Insert { relation, new }
        }
        b'U' => update(message, &mut reader)?,
        b'D' => {
            let relation = reader.u32()?;
            let kind = reader.u8()?;
            let old = old(message, &mut reader, kind)?;
            Message::Delete { relation, old }
        }
        b'T' => truncate(&mut reader)?,
        b'M' => {
            let _flags = reader.u8()?;
            reader.u64()?;
            reader.text()?;
            let length = reader.u32()?;
            let content = reader.bytes(length as usize)?;
            Message::Emitted { content }
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

fn relation(reader: &mut Reader<'_>) -> Result<Relation, DecodeError> {
    let oid = reader.u32()?;
    let (schema, name) = (reader.text()?, reader.text()?);
    let full = reader.u8()? == b'f';
    let count = reader.u16()?;
    let mut columns = Vec::with_capacity(count.into());
    for _ in 0..count {
        let key = reader.u8()? & 1 == 1;
        let (name, r#type) = (reader.text()?, reader.u32()?);
        let _modifier = reader.i32()?;
        columns.push(RelationColumn { name, r#type, key });
    }
    // `pg_catalog` comes as an empty name.
    let schema = if schema.is_empty() {
        "pg_catalog".into()
    } else {
        schema
    };
    Ok(Relation {
        oid,
        schema,
        name,
        full,
        columns: columns.into(),
    })
}

fn update(message: &Bytes, reader: &mut Reader<'_>) -> Result<Message, DecodeError> {
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
    Ok(Message::Update { relation, old, new })
}

fn old(message: &Bytes, reader: &mut Reader<'_>, kind: u8) -> Result<Old, DecodeError> {
    match kind {
        b'K' => Ok(Old::Key(Tuple::read(message, reader)?)),
        b'O' => Ok(Old::Row(Tuple::read(message, reader)?)),
        kind => Err(DecodeError::Unknown {
            what: "old row",
            kind,
        }),
    }
}

fn truncate(reader: &mut Reader<'_>) -> Result<Message, DecodeError> {
    let count = reader.u32()?;
    let _options = reader.u8()?;
    let mut relations = Vec::new();
    for _ in 0..count {
        relations.push(reader.u32()?);
    }
    Ok(Message::Truncate {
        relations: relations.into(),
    })
}

fn expect(reader: &mut Reader<'_>, wanted: u8) -> Result<(), DecodeError> {
    match reader.u8()? {
        kind if kind == wanted => Ok(()),
        kind => Err(DecodeError::Unknown {
            what: "new row",
            kind,
        }),
    }
}
