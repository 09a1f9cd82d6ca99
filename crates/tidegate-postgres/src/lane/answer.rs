//! What a lane gives: the rows of a read.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, Flow, RawRow, Result, RowSink};

use crate::connection::ConnectError;
use crate::dictionary::shape::Shape;

/// The tag and the length of a message.
const HEADER: usize = 5;

/// All rows of a read, as messages.
#[derive(Debug)]
pub(crate) struct Answer {
    shape: Arc<Shape>,
    rows: Vec<u8>,
}

impl Answer {
    pub(super) fn new(shape: Arc<Shape>, rows: Vec<u8>) -> Self {
        Self { shape, rows }
    }

    /// Pushes the rows into the sink.
    ///
    /// # Errors
    /// Those of the sink; [`Error::Internal`] when PostgreSQL sent a row of another shape.
    pub(crate) async fn push(&self, sink: &mut dyn RowSink) -> Result<Completion> {
        sink.columns(&self.shape.columns)?;
        let mut rest = &self.rows[..];
        while let Some((row, behind)) = next(rest) {
            rest = behind;
            let row = row.get(2..);
            let row = row.and_then(|values| RawRow::new(self.shape.columns.len(), values));
            let row = row.ok_or_else(|| {
                Error::internal(ConnectError::Protocol("a row of another shape".to_owned()))
            })?;
            if sink.row(row)? == Flow::Wait {
                sink.ready().await?;
            }
        }
        Ok(Completion {
            affected_rows: None,
        })
    }
}

/// The body of the first message, and what is behind it.
fn next(messages: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, a, b, c, d], _) = messages.split_first_chunk::<HEADER>()?;
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let (message, rest) = messages.split_at_checked(length + 1)?;
    Some((message.get(HEADER..)?, rest))
}
