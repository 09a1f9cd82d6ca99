//! The state of a database's stream: whether the stream is open, and how far it has been read.

use std::time::Duration;

use tidegate_changelog::LogPosition;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{Error, Result};

#[derive(Clone, Debug, Default)]
pub(crate) struct StreamState {
    /// Whether the stream is open and its changes are dispatched.
    pub(crate) live: bool,
    /// The position up to which all changes of committed transactions have been dispatched.
    pub(crate) reached: LogPosition,
    /// Why the most recent attempt to open the stream failed; `None` after a success or before the
    /// first attempt.
    pub(crate) problem: Option<StreamProblem>,
    /// Whether the feed has stopped. The stream is then not opened again.
    pub(crate) stopped: bool,
}

/// Why the stream could not be opened.
#[derive(Clone, Debug)]
pub(crate) enum StreamProblem {
    NotAllowed { reason: String, remedy: String },
    TimedOut { what: String, limit: Duration },
    Other(String),
}

/// The progress of the live reader. Other tasks wait for positions here.
pub(crate) struct StreamProgress {
    state: watch::Sender<StreamState>,
    /// Requests that the live reader asks the stream for its current position.
    pub(crate) progress_request: Notify,
    /// Requests that the live reader opens the stream again at the current end of the log.
    pub(crate) reopen_request: Notify,
    /// Ends the pause before the next attempt to open the stream.
    pub(crate) retry_request: Notify,
    /// The time limit that is reported in [`Error::Timeout`].
    timeout: Duration,
}

impl StreamProgress {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            state: watch::Sender::new(StreamState::default()),
            progress_request: Notify::new(),
            reopen_request: Notify::new(),
            retry_request: Notify::new(),
            timeout,
        }
    }

    pub(crate) fn state(&self) -> StreamState {
        self.state.borrow().clone()
    }

    pub(crate) fn is_live(&self) -> bool {
        self.state.borrow().live
    }

    pub(crate) fn reached(&self) -> LogPosition {
        self.state.borrow().reached
    }

    /// Changes the state, and wakes all tasks that wait for a change of the state.
    pub(crate) fn update(&self, change: impl FnOnce(&mut StreamState)) {
        self.state.send_modify(change);
    }

    /// Records that everything before a position was dispatched. An earlier position than the
    /// current one changes nothing.
    pub(crate) fn advance(&self, position: LogPosition) {
        self.state.send_if_modified(|state| {
            let has_advanced = position > state.reached;
            state.reached = state.reached.max(position);
            has_advanced
        });
    }

    /// Waits before the next attempt to open the stream. The wait ends early when another part of
    /// the service has reached PostgreSQL.
    pub(crate) async fn pause(&self, pause: Duration) {
        // The result is ignored, because it does not matter whether the wait ended early.
        let _ = timeout(pause, self.retry_request.notified()).await;
    }

    /// Waits until the stream is open.
    ///
    /// # Errors
    ///
    /// If the stream is not open at the deadline, or if the feed has stopped. The error says why
    /// the most recent attempt to open the stream failed: [`Error::CaptureNotAllowed`],
    /// [`Error::Timeout`] or [`Error::Unavailable`]. If that is unknown, it is
    /// [`Error::Unavailable`] without a cause.
    pub(crate) async fn wait_live(&self, deadline: Instant) -> Result<()> {
        let mut stream = self.state.subscribe();
        let settled = stream.wait_for(|state| state.live || state.stopped);
        let settled = timeout_at(deadline, settled).await;
        if settled.is_ok_and(|state| state.is_ok_and(|state| state.live)) {
            return Ok(());
        }
        match self.state.borrow().problem.clone() {
            Some(StreamProblem::NotAllowed { reason, remedy }) => {
                Err(Error::CaptureNotAllowed { reason, remedy })
            }
            Some(StreamProblem::TimedOut { what, limit }) => Err(Error::Timeout { what, limit }),
            Some(StreamProblem::Other(problem)) => Err(Error::Unavailable(Some(problem.into()))),
            None => Err(Error::Unavailable(None)),
        }
    }

    /// Waits until the stream is open and everything before a position has been dispatched.
    ///
    /// # Errors
    /// [`Error::Timeout`] if this is not the case at the deadline.
    pub(crate) async fn wait_until_reached(
        &self,
        position: LogPosition,
        deadline: Instant,
    ) -> Result<()> {
        const REQUEST_INTERVAL: Duration = Duration::from_millis(25);
        let mut stream = self.state.subscribe();
        loop {
            // A stream of an idle log returns nothing without a request. The request is repeated,
            // because a request is lost if the stream breaks.
            self.progress_request.notify_one();
            let next = deadline.min(Instant::now() + REQUEST_INTERVAL);
            let reached = stream.wait_for(|state| state.live && state.reached >= position);
            if let Ok(Ok(_)) = timeout_at(next, reached).await {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::Timeout {
                    what: "the stream of changes".to_owned(),
                    limit: self.timeout,
                });
            }
        }
    }
}
