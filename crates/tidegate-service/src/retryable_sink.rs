//! A sink for statements that may be retried.

use tidegate_sql::{BoxFuture, Flow, Result, RowSink};
use tidegate_values::{Column, RawRow};

/// A sink that records whether it has received rows. After it has received a row, the statement
/// cannot be retried.
pub(super) struct RetryableSink<'a> {
    sink: &'a mut dyn RowSink,
    columns: bool,
    rows: bool,
}

impl<'a> RetryableSink<'a> {
    pub(super) fn new(sink: &'a mut dyn RowSink) -> Self {
        Self {
            sink,
            columns: false,
            rows: false,
        }
    }

    pub(super) fn has_rows(&self) -> bool {
        self.rows
    }
}

impl RowSink for RetryableSink<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        // A retried statement reports its columns again. They are passed on only once, because the
        // sink accepts them only once.
        if std::mem::replace(&mut self.columns, true) {
            return Ok(());
        }
        self.sink.columns(columns)
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.rows = true;
        self.sink.row(row)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        self.sink.ready()
    }
}
