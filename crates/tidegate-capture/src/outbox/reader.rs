//! Reads the outbox from a position on, page by page, as pgoutput messages.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_changelog::{LogError, LogMessage, LogPosition, LogResult};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql, Type};

use super::layout::{self, KnownLayout, Layouts};
use super::session::ReaderSession;
use super::{number, pgoutput, position, record_text, unreadable};

/// The maximum number of changes in a page.
const PAGE: i64 = 1024;
/// The size of a page in bytes. If a page has several transactions, the total size of their changes
/// is at most this size. A larger transaction takes several pages, each of which ends with the
/// change that reaches this size.
const PAGE_BYTES: i64 = 4 << 20;

/// A transaction in the outbox, with the number and the total size of its changes.
#[derive(Debug)]
struct CommittedTransaction {
    commit: LogPosition,
    xid: String,
    changes: i64,
    bytes: i64,
}

impl CommittedTransaction {
    fn end(&self) -> LogPosition {
        LogPosition(self.commit.0 + self.bytes.unsigned_abs())
    }

    fn fits_a_page(&self) -> bool {
        self.changes <= PAGE && self.bytes <= PAGE_BYTES
    }
}

/// Reads the changes of the outbox in the order of commits.
pub(super) struct OutboxTailer {
    reader: ReaderSession,
    layouts: Layouts,
    /// A text that changes when the definition of a captured table or a policy changes.
    definitions: String,
    /// The id of a transaction. Triggers may have missed changes of transactions with smaller ids.
    /// If the id in the outbox (`state.renewed`) grows while the stream runs, triggers may have
    /// missed changes again, and the stream ends with [`LogError::Gone`].
    renewed: String,
    /// The position that the stream has reached. All changes before it were returned to the caller
    /// of `read`.
    at: LogPosition,
    /// The transactions after `at` that were not returned, or were returned only in part.
    waiting: VecDeque<CommittedTransaction>,
    /// How much of the first transaction in `waiting` was returned: the number of changes, and the
    /// id of the change that was returned last.
    returned: (i64, i64),
}

impl OutboxTailer {
    pub(super) fn new(reader: ReaderSession, start: LogPosition, renewed: String) -> Self {
        Self {
            reader,
            renewed,
            layouts: Layouts::default(),
            definitions: String::new(),
            at: start,
            waiting: VecDeque::new(),
            returned: (0, 0),
        }
    }

    /// Returns the next messages. If there are no more changes, returns the position that was
    /// reached, if it has grown or `requested` is true, and otherwise nothing.
    pub(super) async fn read(&mut self, requested: bool) -> LogResult<Vec<LogMessage>> {
        if self.waiting.is_empty() {
            let (end, renewed) = self.reader.advance().await?;
            if renewed != self.renewed {
                return Err(LogError::Gone);
            }
            if end > self.at {
                self.read_transactions().await?;
            }
            if self.waiting.is_empty() {
                let risen = end > self.at;
                self.at = self.at.max(end);
                let report = risen || requested;
                return Ok(report
                    .then_some(LogMessage::Reached(self.at))
                    .into_iter()
                    .collect());
            }
        }
        let mut batch = Vec::new();
        if self
            .waiting
            .front()
            .is_some_and(CommittedTransaction::fits_a_page)
        {
            self.several(&mut batch).await?;
        } else {
            self.page(&mut batch).await?;
        }
        Ok(batch)
    }

    /// Reads the transactions that have committed since the last read. Fails with
    /// [`LogError::Gone`] if their changes were deleted.
    async fn read_transactions(&mut self) -> LogResult<()> {
        let from = number(self.at);
        let rows = self.reader.rows(TRANSACTIONS, &[&from, &PAGE]).await?;
        for row in &rows {
            if row.get(4) {
                return Err(LogError::Gone);
            }
            let definitions: &str = row.get(5);
            if definitions != self.definitions {
                definitions.clone_into(&mut self.definitions);
                // As in logical decoding, tables are described again after a change of a
                // definition.
                self.layouts.describe_again();
            }
            if let Some(commit) = row.get::<_, Option<i64>>(0) {
                self.waiting.push_back(CommittedTransaction {
                    commit: position(commit),
                    xid: row.get(1),
                    changes: row.get(2),
                    bytes: row.get(3),
                });
            }
        }
        Ok(())
    }

    /// Reads as many whole waiting transactions as fit on a page.
    async fn several(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let (mut changes, mut bytes) = (0, 0);
        let fits = |transaction: &&CommittedTransaction| {
            changes += transaction.changes;
            bytes += transaction.bytes;
            changes <= PAGE && bytes <= PAGE_BYTES
        };
        let xids: Vec<String> = self
            .waiting
            .iter()
            .take_while(fits)
            .map(|transaction| transaction.xid.clone())
            .collect();
        let rows = self.reader.rows(SEVERAL, &[&xids]).await?;
        let mut rows = rows.iter().peekable();
        for _ in &xids {
            let Some(transaction) = self.waiting.pop_front() else {
                break;
            };
            batch.push(LogMessage::Change(begin(&transaction)?));
            let mut count = 0;
            while let Some(row) = rows.next_if(|row| row.get::<_, &str>(0) == transaction.xid) {
                self.change(row, batch).await?;
                count += 1;
            }
            self.close(&transaction, count, batch)?;
        }
        Ok(())
    }

    /// Reads the next page of a transaction that does not fit on one page.
    async fn page(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let Some(transaction) = self.waiting.pop_front() else {
            return Ok(());
        };
        let (before, last) = self.returned;
        if before == 0 {
            batch.push(LogMessage::Change(begin(&transaction)?));
        }
        let values: [&(dyn ToSql + Sync); 4] = [&transaction.xid, &last, &PAGE, &PAGE_BYTES];
        let rows = self.reader.rows(ONE, &values).await?;
        for row in &rows {
            self.change(row, batch).await?;
        }
        let Some(row) = rows.last() else {
            return self.close(&transaction, before, batch);
        };
        let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.returned = (before + count, row.get(1));
        if self.returned.0 >= transaction.changes {
            return self.close(&transaction, self.returned.0, batch);
        }
        self.waiting.push_front(transaction);
        Ok(())
    }

    /// Appends the end of a transaction. Fails with [`LogError::Gone`] if `count`, the number of
    /// changes that were read, shows that some of the changes were deleted.
    fn close(
        &mut self,
        transaction: &CommittedTransaction,
        count: i64,
        batch: &mut Vec<LogMessage>,
    ) -> LogResult<()> {
        if count != transaction.changes {
            return Err(LogError::Gone);
        }
        let end = transaction.end();
        batch.push(LogMessage::Change(pgoutput::commit(
            transaction.commit,
            end,
        )));
        self.at = end;
        self.returned = (0, 0);
        Ok(())
    }

    /// Adds a change, preceded by the description of its table if the stream has not described it
    /// yet.
    async fn change(&mut self, row: &Row, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let (layout, table): (i64, u32) = (row.get(2), row.get(3));
        let operation = row.get::<_, i8>(4).unsigned_abs();
        if matches!(operation, b'T' | b'G') {
            let root = u32::try_from(layout).map_err(|_| unreadable("a table's number"))?;
            return self.gap(root, batch).await;
        }
        let known = match self.layouts.known(table, layout) {
            Some(known) => known,
            None => self.layouts.load(&self.reader, table, layout).await?,
        };
        let KnownLayout { layout, order } = known;
        let text: RawText<'_> = row.get(5);
        // A row that does not match its layout was written while the table was altered. It cannot
        // be decoded, so a gap is reported.
        let Some(values) = record_text::values(text.0, layout.columns.len()) else {
            return self.gap(layout.root, batch).await;
        };
        let order = order.unwrap_or_else(|| {
            batch.push(LogMessage::Change(pgoutput::relation(&layout)));
            self.layouts.describe(&layout)
        });
        let values: Vec<_> = order.iter().filter_map(|at| values.get(*at)).collect();
        let message = pgoutput::row(operation, layout.root, &values);
        batch.push(LogMessage::Change(message));
        Ok(())
    }

    /// Reports a TRUNCATE of a table, or a gap in its changes, as a TRUNCATE message.
    async fn gap(&mut self, root: u32, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        if !self.layouts.is_described(root) {
            // A table that was dropped needs no report.
            let Some(layout) = layout::current(&self.reader, root).await? else {
                return Ok(());
            };
            batch.push(LogMessage::Change(pgoutput::relation(&layout)));
            self.layouts.describe(&Arc::new(layout));
        }
        batch.push(LogMessage::Change(pgoutput::truncate(root)));
        Ok(())
    }
}

fn begin(transaction: &CommittedTransaction) -> LogResult<Bytes> {
    let number = transaction.xid.parse();
    let number = number.map_err(|_| unreadable("a transaction's number"))?;
    Ok(pgoutput::begin(transaction.commit, number))
}

/// The bytes of a text in any encoding.
struct RawText<'a>(&'a [u8]);

impl<'a> FromSql<'a> for RawText<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TEXT
    }
}

/// Selects at most `$2` transactions from the position `$1` on, and whether changes from that
/// position on were deleted. If there are no transactions, selects one row in which their columns
/// are NULL.
///
/// Also selects a text that changes when the definition of a captured table, of one of its indexes,
/// or of a policy changes. The text consists of sums of `xmin` over the catalog rows, and of the
/// number of policies. `xmin` is the id of the transaction that last wrote a row.
const TRANSACTIONS: &str = "\
    SELECT c.position, c.xid::text, c.changes, c.bytes, s.earliest > $1, \
           pg_catalog.concat_ws(' ', \
               (SELECT pg_catalog.sum(t.xmin::text::bigint) FROM pg_catalog.pg_class t \
                JOIN tidegate_outbox.captured d ON d.relation = t.oid), \
               (SELECT pg_catalog.sum(a.xmin::text::bigint) FROM pg_catalog.pg_attribute a \
                JOIN tidegate_outbox.captured d ON d.relation = a.attrelid), \
               (SELECT pg_catalog.sum(i.xmin::text::bigint) FROM pg_catalog.pg_index i \
                JOIN tidegate_outbox.captured d ON d.relation = i.indrelid), \
               (SELECT pg_catalog.count(*) FROM pg_catalog.pg_policy), \
               (SELECT pg_catalog.sum(p.xmin::text::bigint) FROM pg_catalog.pg_policy p)) \
    FROM tidegate_outbox.state s LEFT JOIN LATERAL (\
        SELECT * FROM tidegate_outbox.commit c WHERE c.position >= $1 \
        ORDER BY c.position LIMIT $2) c ON true ORDER BY c.position";

/// Selects the changes of several transactions.
const SEVERAL: &str = "\
    SELECT h.xid::text, h.id, h.layout, h.relation, h.operation, coalesce(h.image, '') \
    FROM pg_catalog.unnest($1::text[]::xid8[]) WITH ORDINALITY AS t(xid, place) \
    CROSS JOIN LATERAL (SELECT * FROM tidegate_outbox.change h WHERE h.xid = t.xid) h \
    ORDER BY t.place, h.id";

/// Selects a page of the changes of one transaction.
const ONE: &str = "\
    SELECT h.xid::text, h.id, h.layout, h.relation, h.operation, coalesce(h.image, '') FROM (\
        SELECT h.*, pg_catalog.sum(coalesce(pg_catalog.octet_length(h.image), 0)) \
               OVER (ORDER BY h.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
        FROM (SELECT * FROM tidegate_outbox.change \
              WHERE xid = $1::text::xid8 AND id > $2 ORDER BY id LIMIT $3) h) h \
    WHERE coalesce(h.before, 0) < $4 ORDER BY h.id";
