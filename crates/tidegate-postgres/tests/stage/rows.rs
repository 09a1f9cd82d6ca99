//! Sinks for tests.

use bytes::BytesMut;
use tidegate_sql::{BoxFuture, Completion, Flow, Result, RowSink};
use tidegate_values::codec::ValueWriter;
use tidegate_values::{Column, RawRow};
use tokio::sync::watch;

/// What came back, values as JSON.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) values: Vec<Vec<String>>,
    pub(crate) affected: Option<u64>,
}

/// Gathers rows.
#[derive(Default)]
pub(crate) struct Gathered {
    columns: Option<Vec<Column>>,
    rows: Vec<Vec<String>>,
}

impl Gathered {
    pub(crate) fn rows(self, completion: Completion) -> Rows {
        let columns = self.columns.expect("columns come before the end");
        Rows {
            columns,
            values: self.rows,
            affected: completion.affected_rows,
        }
    }
}

impl RowSink for Gathered {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        assert!(self.columns.is_none(), "columns came twice");
        self.columns = Some(columns.to_vec());
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let columns = self.columns.as_ref().expect("columns come before rows");
        let mut values = Vec::new();
        for (column, value) in columns.iter().zip(row.values()) {
            let mut json = BytesMut::new();
            match value {
                Some(raw) => ValueWriter::new(column).json(raw, &mut json)?,
                None => json.extend_from_slice(b"null"),
            }
            values.push(String::from_utf8(json.to_vec()).unwrap());
        }
        self.rows.push(values);
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Counts rows, and stops after each `pause` of them until it is told to go on.
pub(crate) struct Stalled {
    pub(crate) seen: u64,
    pub(crate) bytes: u64,
    pub(crate) pause: u64,
    pub(crate) go: watch::Receiver<bool>,
    pub(crate) stopped: watch::Sender<u64>,
}

impl RowSink for Stalled {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.seen += 1;
        self.bytes += row.size() as u64;
        if self.seen.is_multiple_of(self.pause) && !*self.go.borrow() {
            self.stopped.send_replace(self.seen);
            return Ok(Flow::Wait);
        }
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            self.go
                .wait_for(|go| *go)
                .await
                .map_err(tidegate_sql::Error::internal)?;
            Ok(())
        })
    }
}
