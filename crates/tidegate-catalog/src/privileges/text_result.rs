//! Collects the result of a statement that returns one text.

use tidegate_sql::{BoxFuture, Flow, RowSink};
use tidegate_values::{Column, RawRow};

/// Stores the only value of the only row; `None` if there is no row or the value is NULL.
#[derive(Default)]
pub(super) struct TextResult(pub(super) Option<String>);

impl RowSink for TextResult {
    fn columns(&mut self, _: &[Column]) -> tidegate_sql::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> tidegate_sql::Result<Flow> {
        // A text value has the same bytes in both wire formats.
        if let Some(Some(value)) = row.values().next() {
            let text = std::str::from_utf8(value).map_err(tidegate_sql::Error::internal)?;
            self.0 = Some(text.to_owned());
        }
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, tidegate_sql::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
