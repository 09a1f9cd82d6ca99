//! The port: logs, streams and captures.

use std::time::Duration;

use bytes::Bytes;
use tidegate_sql::{BoxFuture, DatabaseName};

use crate::error::LogResult;
use crate::position::{LogIdentity, LogPosition};

/// What a stream returns.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// A message of `pgoutput` with values in their text form (PostgreSQL, "Logical Replication
    /// Message Formats"). Transactions come whole, in the order of their commits.
    Change(Bytes),
    /// Everything that committed before this position has been returned.
    Reached(LogPosition),
}

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// As far back as the log is kept.
    Earliest,
    /// With the transactions that commit at or after this position.
    At(LogPosition),
    /// With what commits from now on.
    Now,
}

/// Gives access to the change logs of databases.
pub trait ChangeLog: Send + Sync {
    /// Opens a stream.
    ///
    /// # Errors
    /// [`LogError::Gone`](crate::LogError::Gone) when the log does not reach back to the start.
    fn open<'a>(
        &'a self,
        database: &'a DatabaseName,
        start: LogStart,
    ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>>;

    /// Makes the changes of a table appear in the log as `demand` needs them.
    ///
    /// Every transaction that began before the table was captured has ended when this returns.
    fn capture<'a>(
        &'a self,
        database: &'a DatabaseName,
        demand: &'a Demand,
    ) -> BoxFuture<'a, LogResult<Captured>>;

    /// Checks whether rows of a captured table came or went with its partitions, which no stream
    /// reports: partitions that were attached with rows, detached, dropped or truncated. Returns the
    /// position before which that happened last, or `None` if it never did.
    ///
    /// `truncations` are the transactions, by the lower halves of their numbers, of which the stream has
    /// reported that they truncated the whole table.
    fn partitions<'a>(
        &'a self,
        database: &'a DatabaseName,
        relation: u32,
        truncations: &'a [u32],
    ) -> BoxFuture<'a, LogResult<Option<LogPosition>>>;

    /// The query that reports whether tables are still captured, since others may change the
    /// capture. It is one cheap statement for the catalog of a database; its placeholder `:tables`
    /// takes the OIDs of tables as the text of an array.
    ///
    /// It returns a row of four texts for each of these tables that exists, and for each other table
    /// that is captured: the table's OID; marks of the capture of its INSERTs, separated by commas,
    /// of which at least one stays as long as no change was missed; the same for its UPDATEs and
    /// DELETEs; and whether every statement that writes to the table works in spite of the capture.
    fn health_query(&self) -> &'static str;

    /// Ends the capture of all tables except `kept`, and restores what was changed for it.
    fn release<'a>(
        &'a self,
        database: &'a DatabaseName,
        kept: &'a [u32],
    ) -> BoxFuture<'a, LogResult<()>>;

    /// Moves the start of the retention window to `keep`, the oldest position that may still be
    /// read, or further when the window has grown too large. Returns the end of the log.
    fn retain<'a>(
        &'a self,
        database: &'a DatabaseName,
        keep: LogPosition,
    ) -> BoxFuture<'a, LogResult<LogPosition>>;

    /// Drops the retention window: no subscriber will resume.
    fn abandon<'a>(&'a self, database: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>>;
}

/// What a subscription needs of a table's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table's OID.
    pub relation: u32,
    /// Whether UPDATE and DELETE are needed, or INSERT alone.
    pub changes: bool,
    /// Whether the whole old row is needed.
    pub old_rows: bool,
    /// The longest wait for open transactions.
    pub patience: Duration,
}

/// A captured table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// From this position on, every change of the table is in the log.
    pub since: LogPosition,
    /// The subscription is acknowledged when the stream has reached this.
    pub barrier: LogPosition,
}

/// A stream of changes.
pub trait LogStream: Send {
    /// Which log it is.
    fn identity(&self) -> LogIdentity;

    /// Where it starts: everything that commits after this will be returned.
    fn start(&self) -> LogPosition;

    /// Waits for messages and appends at least one to `batch`. The future may be dropped and the
    /// function called again; no message is lost.
    ///
    /// # Errors
    /// After an error the stream can only be dropped.
    fn next<'a>(&'a mut self, batch: &'a mut Vec<LogMessage>) -> BoxFuture<'a, LogResult<()>>;

    /// Confirms that everything up to a position has been processed. The position is the end of a
    /// transaction, or that of a [`LogMessage::Reached`].
    fn confirm(&mut self, position: LogPosition);

    /// Requests a [`LogMessage::Reached`] soon.
    fn request_position(&mut self);
}
