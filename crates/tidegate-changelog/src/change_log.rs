//! The interface for reading change logs and capturing tables.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tidegate_sql::DatabaseName;

use crate::error::LogResult;
use crate::position::{Lineage, LogIdentity, LogPosition};

/// A message that a stream returns.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// A message of `pgoutput` with values in text form (PostgreSQL, "Logical Replication Message
    /// Formats"). A stream returns the messages of whole transactions, in the order of the commits.
    Change(Bytes),
    /// All transactions that committed before this position have been returned.
    Reached(LogPosition),
}

/// The position at which a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// At the earliest position in the retention window.
    Earliest,
    /// At this position. The stream returns the transactions that commit at or after it.
    At {
        /// The log to which the position belongs.
        log: LogIdentity,
        /// The position.
        position: LogPosition,
    },
    /// At the end of the log, with the transactions that commit from now on.
    Now,
}

/// Gives access to the change logs of databases.
#[async_trait]
pub trait ChangeLog: Send + Sync {
    /// Opens a stream.
    ///
    /// # Errors
    /// [`LogError::Gone`](crate::LogError::Gone) if the log does not reach back to `start`, or does
    /// not continue the log to which `start` belongs.
    async fn open(&self, database: &DatabaseName, start: LogStart)
    -> LogResult<Box<dyn LogStream>>;

    /// Makes the changes of a table appear in the log as `demand` requires.
    ///
    /// Returns after the end of all transactions that began before the table was captured.
    async fn capture(&self, database: &DatabaseName, demand: &Demand) -> LogResult<Captured>;

    /// Checks whether a captured table may have gained or lost rows because a partition was
    /// attached, detached, dropped, truncated or rewritten. No stream reports such a change.
    /// Returns a position after the last such change; `None` if there was none.
    ///
    /// `truncations` has the lower 32 bits of the ids of transactions that truncated the whole
    /// table. The stream has already reported these truncations, so they do not count as changes of
    /// partitions.
    async fn partitions(
        &self,
        database: &DatabaseName,
        relation: u32,
        truncations: &[u32],
    ) -> LogResult<Option<LogPosition>>;

    /// The query that reports whether tables are still captured. It is needed because an operator
    /// or another program may change the capture. The query costs little and reads only the catalog
    /// of a database. Its placeholder `:tables` takes the OIDs of tables as the text of an array.
    ///
    /// The query returns a row of four texts for each of these tables that exists. It may also
    /// return rows for other captured tables. The texts are:
    ///
    /// - the OID of the table
    /// - the marks of the capture of INSERTs, separated by commas
    /// - the marks of the capture of UPDATEs and DELETEs, separated by commas
    /// - `false` if PostgreSQL rejects UPDATE and DELETE on the table because of the capture,
    ///   otherwise `true`
    ///
    /// A mark identifies an object by which the table is captured, such as its entry in a
    /// publication. If two results have a mark in common, no such change was missed in between.
    fn health_query(&self) -> &'static str;

    /// Ends the capture of all tables except `kept` (OIDs). If the capture changed properties of a
    /// released table, restores them.
    async fn release(&self, database: &DatabaseName, kept: &[u32]) -> LogResult<()>;

    /// Moves the start of the retention window to `keep`, the oldest position that is still needed,
    /// or further if the window has grown too large. The start never moves back. Returns the
    /// current end of the log.
    async fn retain(&self, database: &DatabaseName, keep: LogPosition) -> LogResult<LogPosition>;

    /// Drops the retention window. Subscribers can then no longer resume.
    async fn abandon(&self, database: &DatabaseName) -> LogResult<()>;
}

/// The requirements of a subscription for the capture of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table's OID.
    pub relation: u32,
    /// Whether UPDATE and DELETE are captured too. INSERT and TRUNCATE always are.
    pub changes: bool,
    /// Whether the change log must contain whole old rows.
    pub old_rows: bool,
    /// The time limit for the capture, which waits for locks and for the end of open transactions.
    pub timeout: Duration,
}

/// The result of the capture of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The position from which the log has every INSERT and TRUNCATE of the table, and with
    /// [`Demand::changes`] also every UPDATE and DELETE.
    pub since: LogPosition,
    /// The position that the stream must reach before a subscription to the table is acknowledged.
    pub barrier: LogPosition,
}

/// A stream of changes.
#[async_trait]
pub trait LogStream: Send {
    /// The log that the stream reads, and the earlier logs that this log continues.
    fn lineage(&self) -> &Lineage;

    /// The position at which the stream starts. The stream returns all transactions that commit at
    /// or after it.
    fn start(&self) -> LogPosition;

    /// Waits for messages and appends at least one to `batch`. This function is cancel safe: if the
    /// future is dropped, no message is lost.
    ///
    /// # Errors
    ///
    /// After an error the stream must be dropped.
    async fn next(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()>;

    /// Confirms that everything up to a position has been processed. The position must be the end
    /// of a transaction, or the position of a [`LogMessage::Reached`].
    fn confirm(&mut self, position: LogPosition);

    /// Requests that the stream soon returns a [`LogMessage::Reached`].
    fn request_position(&mut self);
}
