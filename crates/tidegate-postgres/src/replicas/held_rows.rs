//! Holds back the rows of a replica until the read has succeeded. If the read fails, it can then
//! run on the primary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_sql::{BoxFuture, Error, Flow, Result, RowSink};
use tidegate_values::{Column, RawRow};

/// The size in bytes up to which the rows of a statement are held back.
const LIMIT: usize = 256 << 10;
/// The number of bytes in which the size of a held row is stored.
const SIZE: usize = size_of::<u32>();

/// The action when the held rows exceed [`LIMIT`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AtLimit {
    /// All rows are passed to the sink. If the replica fails afterwards, the read fails.
    PassOn,
    /// The read is stopped, to run on the primary.
    GiveUp,
}

/// A sink that holds rows back.
pub(super) struct HeldRows<'a> {
    pub(super) sink: &'a mut dyn RowSink,
    columns: Vec<Column>,
    /// The rows, each after its size.
    rows: Vec<u8>,
    at_limit: AtLimit,
    /// Whether columns and rows were passed to the sink.
    passed: Arc<AtomicBool>,
    gave_up: bool,
}

impl<'a> HeldRows<'a> {
    pub(super) fn new(sink: &'a mut dyn RowSink, at_limit: AtLimit) -> Self {
        Self {
            sink,
            columns: Vec::new(),
            rows: Vec::new(),
            at_limit,
            passed: Arc::default(),
            gave_up: false,
        }
    }

    /// Whether rows were passed to the sink. If so, the statement cannot run again.
    pub(super) fn passed(&self) -> bool {
        self.passed.load(Ordering::Relaxed)
    }

    /// The flag that [`Self::passed`] returns. It can be read while the sink is in use.
    pub(super) fn passed_flag(&self) -> Arc<AtomicBool> {
        self.passed.clone()
    }

    /// Whether the read was stopped because its rows exceeded the limit.
    pub(super) fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Passes the held columns and rows to the sink.
    pub(super) async fn deliver(&mut self) -> Result<()> {
        if self.passed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.sink.columns(&self.columns)?;
        let held = std::mem::take(&mut self.rows);
        let mut rest = &held[..];
        while let Some((size, after)) = rest.split_first_chunk::<SIZE>() {
            let split = after.split_at_checked(u32::from_ne_bytes(*size) as usize);
            let row = split.and_then(|(row, after)| {
                rest = after;
                RawRow::new(self.columns.len(), row)
            });
            let row = row.ok_or_else(|| Error::internal("a held row is malformed"))?;
            if self.sink.row(row)? == Flow::Wait {
                self.sink.ready().await?;
            }
        }
        Ok(())
    }

    fn hold(&mut self, row: RawRow<'_>) -> Result<()> {
        let size = u32::try_from(row.size()).map_err(Error::internal)?;
        self.rows.extend_from_slice(&size.to_ne_bytes());
        for value in row.values() {
            let length = value.map_or(Ok(-1), |value| i32::try_from(value.len()));
            let length = length.map_err(Error::internal)?;
            self.rows.extend_from_slice(&length.to_be_bytes());
            self.rows.extend_from_slice(value.unwrap_or_default());
        }
        Ok(())
    }
}

impl RowSink for HeldRows<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        if self.passed() {
            return self.sink.row(row);
        }
        let fits = self.rows.len() + row.size() <= LIMIT;
        if !fits && self.at_limit == AtLimit::GiveUp {
            self.rows = Vec::new();
            self.gave_up = true;
            return Err(Error::ResultTooLarge(LIMIT as u64));
        }
        self.hold(row)?;
        Ok(if fits { Flow::Continue } else { Flow::Wait })
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if self.passed() {
                return self.sink.ready().await;
            }
            self.deliver().await
        })
    }
}

#[cfg(test)]
mod tests {
    use tidegate_values::{Type, WireFormat};

    use super::*;

    /// Counts rows and their bytes. Asks for a pause after each row.
    #[derive(Default)]
    struct Counted {
        columns: usize,
        rows: usize,
        bytes: usize,
        pauses: usize,
    }

    impl RowSink for Counted {
        fn columns(&mut self, _: &[Column]) -> Result<()> {
            self.columns += 1;
            Ok(())
        }

        fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
            assert_eq!(self.pauses, self.rows, "a row came during a pause");
            self.rows += 1;
            self.bytes += row.size();
            Ok(Flow::Wait)
        }

        fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
            self.pauses += 1;
            Box::pin(std::future::ready(Ok(())))
        }
    }

    /// Two rows: one without columns, and one with two values, which are NULL and a text of 1,000
    /// bytes.
    fn rows() -> [(usize, Vec<u8>); 2] {
        let mut row = (-1_i32).to_be_bytes().to_vec();
        row.extend(1000_i32.to_be_bytes());
        row.resize(row.len() + 1000, b'x');
        [(0, Vec::new()), (2, row)]
    }

    async fn push(held: &mut HeldRows<'_>, count: usize) -> Result<()> {
        let [_, (columns, row)] = rows();
        for _ in 0..count {
            if held.row(RawRow::new(columns, &row).unwrap())? == Flow::Wait {
                held.ready().await?;
            }
        }
        Ok(())
    }

    #[tokio::test]
    async fn rows_are_held_until_they_are_delivered() {
        let mut sink = Counted::default();
        let mut held = HeldRows::new(&mut sink, AtLimit::PassOn);
        held.columns(&[]).unwrap();
        let [(columns, empty), _] = rows();
        held.row(RawRow::new(columns, &empty).unwrap()).unwrap();
        assert!(!held.passed());
        held.deliver().await.unwrap();
        assert!(held.passed());
        held.deliver().await.unwrap();
        assert_eq!((sink.columns, sink.rows, sink.bytes), (1, 1, 0));
    }

    #[tokio::test]
    async fn above_the_limit_rows_are_passed_on_or_given_up() {
        let column = Column {
            name: "a".to_owned(),
            r#type: Type::TEXT,
            format: WireFormat::Text,
            origin: None,
        };
        let columns = vec![column; 2];
        let many = LIMIT / 1000 + 10;
        let mut sink = Counted::default();
        let mut held = HeldRows::new(&mut sink, AtLimit::PassOn);
        held.columns(&columns).unwrap();
        push(&mut held, 10).await.unwrap();
        assert!(!held.passed());
        push(&mut held, many).await.unwrap();
        assert!(held.passed());
        held.deliver().await.unwrap();
        assert_eq!((sink.columns, sink.rows), (1, many + 10));
        assert_eq!(sink.bytes, sink.rows * 1008);

        let mut sink = Counted::default();
        let mut held = HeldRows::new(&mut sink, AtLimit::GiveUp);
        held.columns(&columns).unwrap();
        assert!(push(&mut held, many).await.is_err());
        assert!(held.gave_up() && !held.passed());
        assert_eq!(sink.columns, 0);
    }
}
