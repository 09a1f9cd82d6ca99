//! The interface of a change log that several processes share.

use std::time::Duration;

use async_trait::async_trait;
use tidegate_sql::DatabaseName;

use crate::change_log::{ChangeLog, LogStream};
use crate::error::LogResult;
use crate::position::LogPosition;

/// A change log that one process at a time can read for all others.
#[async_trait]
pub trait SharedLog: ChangeLog {
    /// Opens the stream of the only reader. The stream starts at the earliest position in the
    /// retention window. Changes that the reader has confirmed need not stay in the log. Returns
    /// `None` while another process has the stream open.
    ///
    /// # Errors
    ///
    /// Those of [`ChangeLog::open`].
    async fn open_reader(&self, database: &DatabaseName) -> LogResult<Option<Box<dyn LogStream>>>;

    /// Closes the stream that another process opened with [`SharedLog::open_reader`]. Called if the
    /// other process no longer responds. A stream that was opened less than `age` ago is not
    /// closed.
    async fn close_reader(&self, database: &DatabaseName, age: Duration) -> LogResult<()>;

    /// Returns the current end of the log. In contrast to [`ChangeLog::retain`], it changes
    /// nothing, so it does not disturb a reader that is being opened.
    async fn end(&self, database: &DatabaseName) -> LogResult<LogPosition>;
}
