//! Borrowed rows of a result, as PostgreSQL sends them.

use postgres_types::Type;

/// The format in which PostgreSQL sends the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// The text that the type's output function returns.
    Text,
    /// The bytes that the type's send function returns.
    Binary,
}

/// One column of a result.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name of the column in the result.
    pub name: String,
    /// The type of the column, with its elements, attributes and base types.
    pub r#type: Type,
    /// The format of the column's values.
    pub format: WireFormat,
    /// The table column from which the values come: the OID of the table, and the column's `attnum`
    /// in `pg_attribute`. `None` if the values are computed.
    pub origin: Option<(u32, i16)>,
}

/// The column values of one row, borrowed from the receive buffer.
#[derive(Clone, Copy, Debug)]
pub struct RawRow<'a> {
    body: &'a [u8],
}

impl<'a> RawRow<'a> {
    /// Wraps the part of a `DataRow` message that follows the column count (PostgreSQL, "Message
    /// Formats"). For each column this part has a 32-bit length, which is -1 for NULL, and the
    /// bytes of the value.
    ///
    /// Returns `None` if `body` does not have exactly `columns` values.
    pub fn new(columns: usize, body: &'a [u8]) -> Option<Self> {
        let mut rest = body;
        for _ in 0..columns {
            let (length, tail) = rest.split_first_chunk::<4>()?;
            let length = i32::from_be_bytes(*length);
            rest = match usize::try_from(length) {
                Ok(length) => tail.get(length..)?,
                Err(_) if length == -1 => tail,
                Err(_) => return None,
            };
        }
        rest.is_empty().then_some(Self { body })
    }

    /// Wraps the whole body of a `DataRow` message. Returns `None` if it does not have exactly
    /// `columns` values.
    pub fn of_message(columns: usize, body: &'a [u8]) -> Option<Self> {
        Self::new(columns, body.get(2..)?)
    }

    /// The values of the row in column order; `None` is NULL.
    pub fn values(self) -> Values<'a> {
        Values { rest: self.body }
    }

    /// The size of the row in bytes, lengths included.
    pub fn size(self) -> usize {
        self.body.len()
    }
}

/// Iterates over the values of a row.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Values<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (length, tail) = self.rest.split_first_chunk::<4>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = tail;
            return Some(None);
        };
        let (value, tail) = tail.split_at_checked(length)?;
        self.rest = tail;
        Some(Some(value))
    }
}
