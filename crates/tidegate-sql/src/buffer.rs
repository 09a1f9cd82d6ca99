//! Collects a result in memory.

use bytes::BytesMut;
use tidegate_values::{Column, RawRow, RowWriter};

use crate::error::{Error, Result};
use crate::executor::{Completion, Flow, RowSink};

/// A sink that collects a whole result, up to a limit.
#[derive(Debug)]
pub struct Buffer {
    writer: RowWriter,
    bytes: BytesMut,
    limit: u64,
}

impl Buffer {
    /// An empty buffer that accepts at most `limit` bytes.
    pub fn new(writer: RowWriter, limit: u64) -> Self {
        Self {
            writer,
            bytes: BytesMut::new(),
            limit,
        }
    }

    /// Ends the result and returns its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::ResultTooLarge`] if the result has more bytes than the limit.
    pub fn finish(mut self, completion: Completion) -> Result<BytesMut> {
        self.writer
            .finish(completion.affected_rows, &mut self.bytes);
        self.check()?;
        Ok(self.bytes)
    }

    fn check(&self) -> Result<()> {
        if u64::try_from(self.bytes.len()).is_ok_and(|length| length <= self.limit) {
            Ok(())
        } else {
            Err(Error::ResultTooLarge(self.limit))
        }
    }
}

impl RowSink for Buffer {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.writer.columns(columns, &mut self.bytes)?;
        self.check()
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.writer.row(row, &mut self.bytes)?;
        self.check()?;
        Ok(Flow::Continue)
    }
}
