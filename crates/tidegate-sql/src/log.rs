//! The port to PostgreSQL's log of committed changes.
//!
//! What comes out is the logical replication protocol as `pgoutput` writes it (PostgreSQL,
//! "Logical Replication Message Formats"): the text form of values, whole transactions in the order
//! of their commits. Whoever implements the port decides how the messages are got.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;

use crate::executor::BoxFuture;
use crate::principal::DatabaseName;

/// The result of the port's functions.
pub type LogResult<T> = Result<T, LogError>;

/// A place in the log: an LSN (PostgreSQL, "`pg_lsn` Type"), or what a source has in its stead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogPosition(pub u64);

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

impl FromStr for LogPosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (high, low) = text.split_once('/').ok_or(())?;
        let half = |digits: &str| u32::from_str_radix(digits, 16).map_err(|_| ());
        Ok(Self(u64::from(half(high)?) << 32 | u64::from(half(low)?)))
    }
}

/// Which log it is: positions of another one mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogIdentity(pub u32);

/// What a stream gives.
#[derive(Clone, Debug)]
pub enum LogMessage {
    /// A message of pgoutput.
    Change(Bytes),
    /// Everything that committed before this position has been given.
    Reached(LogPosition),
}

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// As far back as the log is kept.
    Earliest,
    /// With the transactions that commit at this position or behind it.
    At(LogPosition),
    /// With what commits from now on.
    Now,
}

/// Gives access to the logs of databases.
pub trait ChangeLog: Send + Sync {
    /// Opens a stream.
    ///
    /// # Errors
    /// [`LogError::Gone`] when the log does not reach back to the start.
    fn open<'a>(
        &'a self,
        database: &'a DatabaseName,
        start: LogStart,
    ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>>;

    /// Sees to it that the changes of a table are written to the log as `demand` needs them.
    ///
    /// When this returns, every transaction that began before the table was captured has ended.
    fn capture<'a>(
        &'a self,
        database: &'a DatabaseName,
        demand: &'a Demand,
    ) -> BoxFuture<'a, LogResult<Captured>>;

    /// Looks whether rows of a captured table came or went with its partitions, which no stream
    /// tells: partitions that were attached with rows, detached, dropped or emptied. Returns the
    /// position before which that happened last; nothing when it never did.
    ///
    /// `told` are the transactions, by the lower halves of their numbers, of which the stream has
    /// told that they emptied the whole table.
    fn partitions<'a>(
        &'a self,
        database: &'a DatabaseName,
        relation: u32,
        told: &'a [u32],
    ) -> BoxFuture<'a, LogResult<Option<LogPosition>>>;

    /// The question whether tables stand as they were captured, which somebody else may change:
    /// one statement, to be asked often and in the catalog of a database, whose placeholder
    /// `:tables` takes the numbers of tables as the text of an array.
    ///
    /// It gives a row for each of them that is there, and for each other that is captured, of four
    /// texts: its number; what stands for the capture of its INSERTs, words with commas between of
    /// which one at least stays as long as nothing was missed; the same for its UPDATEs and
    /// DELETEs; and whether nobody who writes to it is refused because of the capture.
    fn standing(&self) -> &'static str;

    /// Takes tables out of the capture and puts back what was changed for them: all those that
    /// are captured, except `kept`.
    fn release<'a>(
        &'a self,
        database: &'a DatabaseName,
        kept: &'a [u32],
    ) -> BoxFuture<'a, LogResult<()>>;

    /// Looks after the log of a database: moves the retention window on to `keep`, the oldest
    /// position that may still be asked for, or further when the window has grown too large.
    /// Returns where the log ends now.
    fn retain<'a>(
        &'a self,
        database: &'a DatabaseName,
        keep: LogPosition,
    ) -> BoxFuture<'a, LogResult<LogPosition>>;

    /// Gives the retention window up: nobody will resume.
    fn abandon<'a>(&'a self, database: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>>;
}

/// What a subscription needs of a table's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The table's number in `pg_class`.
    pub relation: u32,
    /// Whether UPDATE and DELETE are needed, or INSERT alone.
    pub changes: bool,
    /// Whether the whole old row is needed.
    pub old_rows: bool,
    /// How long waiting for open transactions may take.
    pub patience: Duration,
}

/// A captured table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    /// From here on every change of the table is in the log.
    pub since: LogPosition,
    /// Acknowledge when the stream has reached this.
    pub barrier: LogPosition,
}

/// A stream of changes.
pub trait LogStream: Send {
    /// Which log it is.
    fn identity(&self) -> LogIdentity;

    /// Where it starts: everything that commits behind this will be given.
    fn start(&self) -> LogPosition;

    /// Appends what has come, at least one message. May be dropped and called again; nothing is
    /// lost.
    ///
    /// # Errors
    /// After an error the stream can only be dropped.
    fn next<'a>(&'a mut self, batch: &'a mut Vec<LogMessage>) -> BoxFuture<'a, LogResult<()>>;

    /// Says that everything up to a position has been dealt with. Only the ends of transactions
    /// and what [`LogMessage::Reached`] told are such positions.
    fn confirm(&mut self, position: LogPosition);

    /// Asks for a [`LogMessage::Reached`] soon.
    fn ask(&mut self);
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A right or a setting is missing.
    #[error("the changes may not be captured: {reason}; {remedy}")]
    NotAllowed {
        /// What is missing.
        reason: String,
        /// What to run or to change.
        remedy: String,
    },
    /// The table cannot give what is asked for.
    #[error("the changes of this table cannot be captured: {0}")]
    Unsupported(String),
    /// The table is not there.
    #[error("the table is not there")]
    NoTable,
    /// Something was waited for in vain.
    #[error("{what} took longer than {limit:?}")]
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// The log does not reach back that far.
    #[error("the log does not reach back that far")]
    Gone,
    /// PostgreSQL cannot be reached, is starting or stopping, or has no slot free.
    #[error("the log of changes cannot be read now")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Our fault.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_what_it_writes() {
        let position = LogPosition(0x16_B374_D848);
        assert_eq!(position.to_string(), "16/B374D848");
        assert_eq!("16/B374D848".parse(), Ok(position));
        for wrong in ["", "16", "16/", "/1", "16/G", "1/123456789"] {
            assert_eq!(LogPosition::from_str(wrong), Err(()), "{wrong}");
        }
    }
}
