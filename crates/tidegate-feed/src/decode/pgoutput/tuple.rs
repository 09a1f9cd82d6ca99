//! Rows inside messages (PostgreSQL, "Logical Replication Message Formats", `TupleData`).

use bytes::Bytes;

use super::DecodeError;
use super::reader::MessageReader;

/// A row: the message that contains it, and the offsets of its values in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuple {
    message: Bytes,
    cells: Box<[Cell]>,
}

/// The location of a value in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Null,
    /// The message does not contain the value; see [`ColumnValue::Absent`].
    Absent,
    /// The offset and the length of the value, in bytes.
    At(u32, u32),
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// NULL.
    Null,
    /// The value in its text form.
    Text(&'a [u8]),
    /// The message does not contain the value: it is stored out of line and unchanged, or its
    /// column is outside of the replica identity.
    Absent,
}

impl Tuple {
    pub(super) fn read(
        message: &Bytes,
        reader: &mut MessageReader<'_>,
    ) -> Result<Self, DecodeError> {
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
                        what: "value",
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

    /// The number of values.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether the row has no values.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The value in the column with this index; `Absent` if there is no such column.
    pub fn value(&self, column: usize) -> ColumnValue<'_> {
        match self.cells.get(column) {
            Some(Cell::Null) => ColumnValue::Null,
            Some(Cell::At(start, length)) => {
                let (start, length) = (*start as usize, *length as usize);
                self.message
                    .get(start..start + length)
                    .map_or(ColumnValue::Absent, ColumnValue::Text)
            }
            Some(Cell::Absent) | None => ColumnValue::Absent,
        }
    }

    /// Replaces each absent value by the value of the old row.
    pub(crate) fn fill_absent(&mut self, old: &Self) {
        for (cell, old) in self.cells.iter_mut().zip(&old.cells) {
            if *cell == Cell::Absent {
                *cell = *old;
            }
        }
    }

    /// Marks each value as absent if `is_sent` returns `false` for the index of its column.
    /// PostgreSQL sends NULL for a column outside of the replica identity, and this NULL must not
    /// be treated as the value of the column.
    pub(crate) fn clear_unless(&mut self, mut is_sent: impl FnMut(usize) -> bool) {
        for (column, cell) in self.cells.iter_mut().enumerate() {
            if !is_sent(column) {
                *cell = Cell::Absent;
            }
        }
    }

    /// The memory of the row in bytes, including the whole message.
    pub(crate) fn size(&self) -> usize {
        self.message.len() + std::mem::size_of_val(&*self.cells)
    }
}
