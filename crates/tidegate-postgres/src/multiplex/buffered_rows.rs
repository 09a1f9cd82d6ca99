//! The rows of a pipeline from a multiplexed connection.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, Flow, Result, RowSink};
use tidegate_values::RawRow;
use tidegate_wire::ConnectError;

use crate::metadata::StatementDescription;

/// The length in bytes of a message's tag and length field together.
const HEADER: usize = 5;

/// All rows of a pipeline, as protocol messages.
#[derive(Debug)]
pub(crate) struct BufferedRows {
    /// For each statement its description, and the offset in `rows` at which its rows end.
    parts: Vec<(Arc<StatementDescription>, usize)>,
    rows: Vec<u8>,
}

impl BufferedRows {
    pub(super) fn new(parts: Vec<(Arc<StatementDescription>, usize)>, rows: Vec<u8>) -> Self {
        Self { parts, rows }
    }

    /// Pushes the rows of the statement at `index` in the pipeline into its sink.
    ///
    /// # Errors
    ///
    /// Errors of the sink; [`Error::Internal`] if a row does not match the description.
    pub(crate) async fn push(&self, index: usize, sink: &mut dyn RowSink) -> Result<Completion> {
        let Some((description, end)) = self.parts.get(index) else {
            return Err(Error::internal("a statement without an answer"));
        };
        let begin = index
            .checked_sub(1)
            .and_then(|before| self.parts.get(before));
        let begin = begin.map_or(0, |(_, end)| *end);
        sink.columns(&description.columns)?;
        let mut rest = self.rows.get(begin..*end).unwrap_or_default();
        while let Some((row, after)) = next(rest) {
            rest = after;
            let row = RawRow::of_message(description.columns.len(), row).ok_or_else(|| {
                Error::internal(ConnectError::Protocol(
                    "a row of another description".to_owned(),
                ))
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

/// Returns the body of the first message, and the remaining messages. Returns `None` if there is no
/// complete message.
fn next(messages: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, a, b, c, d], _) = messages.split_first_chunk::<HEADER>()?;
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
    let (message, rest) = messages.split_at_checked(length + 1)?;
    Some((message.get(HEADER..)?, rest))
}
