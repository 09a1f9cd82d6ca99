//! The port that gives access to change logs, their streams and captures.

use std::time::Duration;

use bytes::Bytes;
use tidegate_sql::{BoxFuture, DatabaseName};

use crate::error::LogResult;
use crate::position::{Lineage, LogIdentity, LogPosition};

/// A message that a stream returns.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// A message of `pgoutput` with values in their text form (PostgreSQL, "Logical Replication
    /// Message Formats"). A stream returns whole transactions, in the order of their commits.
    Change(Bytes),
    /// Everything that committed before this position has been returned.
    Reached(LogPosition),
}

/// The position at which a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// At the earliest position from which the log is kept.
    Earliest,
    /// At this position, with the transactions that commit at or after it.
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
pub trait ChangeLog: Send + Sync {
    /// Opens a stream.
    ///
    /// # Errors
    /// [`LogError::Gone`](crate::LogError::Gone) when the log does not reach back to the start, or
    /// does not continue the log of the start.
    fn open<'a>(
        &'a self,
        database: &'a DatabaseName,
        start: LogStart,
    ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>>;

    /// Makes the changes of a table appear in the log as `demand` needs them.
    ///
    /// When this returns, every transaction that began before the table was captured has ended.
    fn capture<'a>(
        &'a self,
        database: &'a DatabaseName,
        demand: &'a Demand,
    ) -> BoxFuture<'a, LogResult<Captured>>;

    /// Checks for changes of a captured table that no stream reports, because rows came or went
    /// with a partition: a partition that was attached with rows, detached, dropped or truncated.
    /// Returns the position before which that happened last, or `None` if it never did.
    ///
    /// `truncations` are the transactions, by the lower halves of their numbers, for which the
    /// stream has reported a TRUNCATE of the whole table.
    fn partitions<'a>(
        &'a self,
        database: &'a DatabaseName,
        relation: u32,
        truncations: &'a [u32],
    ) -> BoxFuture<'a, LogResult<Option<LogPosition>>>;

    /// The query that reports whether tables are still captured, because an operator or another
    /// program may change the capture. It is one cheap statement for the catalog of a database. Its
    /// placeholder `:tables` takes the OIDs of tables as the text of an array.
    ///
    /// It returns a row of four texts for each of these tables that exists, and for each other
    /// captured table. The first is the table's OID. The second lists marks of the capture of its
    /// INSERTs, separated by commas; as long as one mark stays, no change was missed. The third
    /// does the same for its UPDATEs and DELETEs. The fourth says whether every statement that
    /// writes to the table works in spite of the capture.
    fn health_query(&self) -> &'static str;

    /// Ends the capture of all tables except `kept`, and restores what was changed for it.
    fn release<'a>(
        &'a self,
        database: &'a DatabaseName,
        kept: &'a [u32],
    ) -> BoxFuture<'a, LogResult<()>>;

    /// Moves the start of the retention window to `keep`, the oldest position that is still needed,
    /// or further if the window has grown too large. Returns the end of the log.
    fn retain<'a>(
        &'a self,
        database: &'a DatabaseName,
        keep: LogPosition,
    ) -> BoxFuture<'a, LogResult<LogPosition>>;

    /// Drops the retention window, because no subscriber will resume.
    fn abandon<'a>(&'a self, database: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>>;
}

/// The properties of a table that a subscription to its changes needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table's OID.
    pub relation: u32,
    /// Whether UPDATE and DELETE are needed; otherwise INSERT alone.
    pub changes: bool,
    /// Whether events need the whole old row.
    pub old_rows: bool,
    /// The longest wait for open transactions to end.
    pub timeout: Duration,
}

/// A captured table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The position from which on every change of the table is in the log.
    pub since: LogPosition,
    /// The subscription is acknowledged when the stream has reached this position.
    pub barrier: LogPosition,
}

/// A stream of changes.
pub trait LogStream: Send {
    /// The log that the stream reads.
    fn lineage(&self) -> &Lineage;

    /// The position at which the stream starts. The stream returns everything that commits after
    /// it.
    fn start(&self) -> LogPosition;

    /// Waits for messages and appends at least one to `batch`. The future may be dropped and the
    /// function called again; no message is lost.
    ///
    /// # Errors
    ///
    /// After an error the stream must be dropped.
    fn next<'a>(&'a mut self, batch: &'a mut Vec<LogMessage>) -> BoxFuture<'a, LogResult<()>>;

    /// Confirms that everything up to a position has been processed. The position must be the end
    /// of a transaction or that of a [`LogMessage::Reached`].
    fn confirm(&mut self, position: LogPosition);

    /// Makes the stream return a [`LogMessage::Reached`] soon.
    fn request_position(&mut self);
}
