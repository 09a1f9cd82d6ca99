//! Decodes rows of statements whose columns are known.

use std::str;

use tidegate_identity::Timestamp;
use tidegate_sql::{Error as SqlError, Flow, Result as SqlResult, RowSink};
use tidegate_values::{Column, RawRow, WireFormat};

use crate::error::{Error, Result};
use crate::instant;

/// The values of one row. They are decoded from left to right.
pub(crate) struct Record<'a> {
    values: tidegate_values::Values<'a>,
}

impl<'a> Record<'a> {
    fn next(&mut self) -> Result<Option<&'a [u8]>> {
        let missing = || Error::failed("a column is missing");
        self.values.next().ok_or_else(missing)
    }

    fn required(&mut self) -> Result<&'a [u8]> {
        self.next()?
            .ok_or_else(|| Error::failed("a column that is never null is null"))
    }

    /// Reads the next value, which is a `text` or `json`.
    pub(crate) fn text(&mut self) -> Result<&'a str> {
        str::from_utf8(self.required()?).map_err(Error::failed)
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<&'a str>> {
        let value = self.next()?.map(str::from_utf8);
        value.transpose().map_err(Error::failed)
    }

    pub(crate) fn string(&mut self) -> Result<String> {
        self.text().map(str::to_owned)
    }

    pub(crate) fn optional_string(&mut self) -> Result<Option<String>> {
        Ok(self.optional_text()?.map(str::to_owned))
    }

    /// Reads the next value, which is a `bytea`.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        self.required()
    }

    pub(crate) fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>> {
        self.next()
    }

    /// Reads the next value, which has exactly `N` bytes, such as a `uuid`.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.required()?.try_into().map_err(Error::failed)
    }

    pub(crate) fn optional_array<const N: usize>(&mut self) -> Result<Option<[u8; N]>> {
        let bytes = self.optional_bytes()?.map(<[u8; N]>::try_from);
        bytes.transpose().map_err(Error::failed)
    }

    pub(crate) fn boolean(&mut self) -> Result<bool> {
        self.array::<1>().map(|[value]| value != 0)
    }

    /// Reads the next value, which is a `bigint`.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads the next value, which is a `bigint` that is never negative.
    pub(crate) fn count(&mut self) -> Result<u64> {
        u64::try_from(self.integer()?).map_err(Error::failed)
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp> {
        self.integer().map(instant::from_binary)
    }

    pub(crate) fn optional_timestamp(&mut self) -> Result<Option<Timestamp>> {
        let Some(value) = self.next()? else {
            return Ok(None);
        };
        let micros = i64::from_be_bytes(value.try_into().map_err(Error::failed)?);
        Ok(Some(instant::from_binary(micros)))
    }
}

/// A function that decodes a row.
pub(crate) type Read<T> = fn(&mut Record<'_>) -> Result<T>;

/// Decodes a row of one `bigint` that is never negative.
pub(crate) fn count(row: &mut Record<'_>) -> Result<u64> {
    row.count()
}

/// Decodes a row of one `boolean`.
pub(crate) fn boolean(row: &mut Record<'_>) -> Result<bool> {
    row.boolean()
}

/// Decodes a row of one `text`.
pub(crate) fn string(row: &mut Record<'_>) -> Result<String> {
    row.string()
}

/// Decodes a row of one `timestamptz` that may be NULL.
pub(crate) fn optional_timestamp(row: &mut Record<'_>) -> Result<Option<Timestamp>> {
    row.optional_timestamp()
}

/// Decodes nothing, for rows whose values are not needed.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it is one of the functions that read rows"
)]
pub(crate) fn nothing(_row: &mut Record<'_>) -> Result<()> {
    Ok(())
}

/// A sink that decodes each row and collects the results.
pub(crate) struct RowCollector<T> {
    read: Read<T>,
    pub(crate) found: Vec<T>,
}

impl<T> RowCollector<T> {
    pub(crate) fn new(read: Read<T>) -> Self {
        Self {
            read,
            found: Vec::new(),
        }
    }
}

impl<T: Send> RowSink for RowCollector<T> {
    fn columns(&mut self, columns: &[Column]) -> SqlResult<()> {
        // [`Record`] decodes only the binary format. `Record::text` is for types whose binary
        // format is their text, such as `text` and `json`.
        let readable = columns
            .iter()
            .all(|column| column.format == WireFormat::Binary);
        if readable {
            Ok(())
        } else {
            Err(SqlError::internal(
                "the control schema is read in binary form",
            ))
        }
    }

    fn row(&mut self, row: RawRow<'_>) -> SqlResult<Flow> {
        let mut record = Record {
            values: row.values(),
        };
        let found = (self.read)(&mut record).map_err(SqlError::internal)?;
        self.found.push(found);
        Ok(Flow::Continue)
    }
}
