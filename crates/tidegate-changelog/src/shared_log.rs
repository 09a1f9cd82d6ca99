//! The interface of a change log that several processes share.

use std::time::Duration;

use tidegate_sql::{BoxFuture, DatabaseName};

use crate::change_log::{ChangeLog, LogStream};
use crate::error::LogResult;
use crate::position::LogPosition;

/// A change log that one process at a time can read for all others.
pub trait SharedLog: ChangeLog {
    /// Opens the stream of the only reader. The stream starts at the earliest position from which
    /// the log is kept. The log need not keep changes that the reader has confirmed. Returns `None`
    /// while another process has the stream open.
    ///
    /// # Errors
    ///
    /// Those of [`ChangeLog::open`].
    fn open_reader<'a>(
        &'a self,
        database: &'a DatabaseName,
    ) -> BoxFuture<'a, LogResult<Option<Box<dyn LogStream>>>>;

    /// Closes the stream that another process opened with [`SharedLog::open_reader`]. Called if the
    /// other process no longer responds. A stream that was opened less than `age` ago is not
    /// closed.
    fn close_reader<'a>(
        &'a self,
        database: &'a DatabaseName,
        age: Duration,
    ) -> BoxFuture<'a, LogResult<()>>;

    /// Returns the current end of the log. In contrast to [`ChangeLog::retain`], it changes
    /// nothing, so it does not disturb a reader that is being opened.
    fn end<'a>(&'a self, database: &'a DatabaseName) -> BoxFuture<'a, LogResult<LogPosition>>;
}
