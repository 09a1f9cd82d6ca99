//! Rows inside messages (PostgreSQL, "Logical Replication Message Formats", `TupleData`).

use bytes::Bytes;

use super::DecodeError;
use super::reader::Reader;

/// A row: where its values stand in the message that brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    message: Bytes,
    cells: Box<[Cell]>,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Null,
    /// Out of line and unchanged: PostgreSQL does not send it.
    Absent,
    At(u32, u32),
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// In text form.
    Text(&'a [u8]),
    /// The message does not tell it: it was not changed and stands out of line, or it is not part
    /// of the replica identity.
    Absent,
}

impl Tuple {
    pub(super) fn read(message: &Bytes, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.u16()?;
        let mut cells = Vec::with_capacity(count.into());
        for _ in 0..count {
            cells.push(match reader.u8()? {
                b'n' => Cell::Null,
                b'u' => Cell::Absent,
                b't' => {
                    let length = reader.u32()?;
                    let start = reader.skip(length as usize)?;
                    let start = u32::try_from(start).map_err(|_| DecodeError::Truncated)?;
                    Cell::At(start, length)
                }
                b'b' => return Err(DecodeError::Binary),
                kind => {
                    return Err(DecodeError::Unknown {
                        what: "a value",
                        kind,
                    });
                }
            });
        }
        Ok(Self {
            message: message.clone(),
            cells: cells.into(),
        })
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value in a column.
    pub fn value(&self, column: usize) -> Value<'_> {
        match self.cells.get(column) {
            Some(Cell::Null) => Value::Null,
            Some(Cell::At(start, length)) => {
                let (start, length) = (*start as usize, *length as usize);
                self.message
                    .get(start..start + length)
                    .map_or(Value::Absent, Value::Text)
            }
            Some(Cell::Absent) | None => Value::Absent,
        }
    }

    /// Takes what is absent from an older image of the row, out of the same message.
    pub(crate) fn fill(&mut self, old: &Self) {
        for (cell, old) in self.cells.iter_mut().zip(&old.cells) {
            if *cell == Cell::Absent {
                *cell = *old;
            }
        }
    }

    /// Forgets what only looks like a value: outside of the replica identity PostgreSQL sends NULL.
    pub(crate) fn keep(&mut self, mut is_sent: impl FnMut(usize) -> bool) {
        for (column, cell) in self.cells.iter_mut().enumerate() {
            if !is_sent(column) {
                *cell = Cell::Absent;
            }
        }
    }

    /// What the row costs in memory.
    pub(crate) fn size(&self) -> usize {
        self.message.len() + std::mem::size_of_val(&*self.cells)
    }
}
