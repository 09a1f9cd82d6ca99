//! Whether a database's stream is open and how far it is, and waiting for that.

use std::time::Duration;

use tidegate_sql::log::LogPosition;
use tokio::time::{Instant, timeout_at};

use crate::database::Database;
use crate::error::{Error, Result};

/// Where the stream is.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) live: bool,
    /// Everything that committed before this has been handed out.
    pub(crate) reached: LogPosition,
    /// Why it is not live.
    pub(crate) problem: Option<Problem>,
    /// Nobody opens it any more.
    pub(crate) stopped: bool,
}

/// Why there is no stream.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    NotAllowed { reason: String, remedy: String },
    TimedOut { what: String, limit: Duration },
    Other(String),
}

impl Database {
    /// Waits until the stream is live.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or why the log may not be read.
    pub(crate) async fn live(&self, deadline: Instant) -> Result<()> {
        let mut stream = self.stream.subscribe();
        let live = timeout_at(
            deadline,
            stream.wait_for(|stream| stream.live || stream.stopped),
        );
        if live
            .await
            .is_ok_and(|state| state.is_ok_and(|state| state.live))
        {
            return Ok(());
        }
        match self.stream.borrow().problem.clone() {
            Some(Problem::NotAllowed { reason, remedy }) => {
                Err(Error::CaptureNotAllowed { reason, remedy })
            }
            Some(Problem::TimedOut { what, limit }) => Err(Error::Timeout { what, limit }),
            Some(Problem::Other(problem)) => Err(Error::Unavailable(Some(problem.into()))),
            None => Err(Error::Unavailable(None)),
        }
    }

    /// Waits until everything before a position has been handed out.
    pub(crate) async fn reach(&self, position: LogPosition, deadline: Instant) -> Result<()> {
        const ASK: Duration = Duration::from_millis(25);
        let mut stream = self.stream.subscribe();
        loop {
            self.poke.notify_one();
            let next = deadline.min(Instant::now() + ASK);
            let reached = stream.wait_for(|stream| stream.live && stream.reached >= position);
            if let Ok(Ok(_)) = timeout_at(next, reached).await {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::Timeout {
                    what: "the stream of changes".to_owned(),
                    limit: self.settings.patience,
                });
            }
        }
    }
}
