//! From any state back to a connection that can be lent, or to a closed one.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Condition, Connection, TransactionStatus};
use crate::session::names::Names;
use crate::session::reset::{CHECK_ROWS, Residue};
use crate::terminator::{Backend, Fate, Terminator};
use crate::wire::rejection::ServerError;
use crate::wire::tag;

/// How long a cancelled statement may take to end before its backend is terminated.
const GRACE: Duration = Duration::from_secs(1);
/// How long a reset may take.
const RESET: Duration = Duration::from_secs(5);
/// When a backend is ended that has not let its connection go.
const PATIENCE: Duration = Duration::from_secs(2);
/// When the administrator is tried again who could not be asked.
const UNASKED: Duration = Duration::from_secs(5);
/// When a backend is ended again that was told before.
const AGAIN: Duration = Duration::from_secs(30);

impl Connection {
    /// Brings the connection back to [`Condition::Ready`]: cancels what still runs (and waits
    /// until the cancel request cannot hit a later statement), terminates the backend when that
    /// does not help within a second, rolls back an open transaction, resets the session.
    ///
    /// Returns whether the connection can be used; if not, drop it.
    pub async fn settle(&mut self, terminator: &dyn Terminator) -> bool {
        if self.condition() == Condition::Unsettled && !self.is_at_rest() {
            self.interrupt(terminator).await;
        }
        if self.condition() == Condition::Resetting {
            self.finish_reset().await;
        }
        // Also when the soft reset found a statement that the caller has prepared.
        if self.condition() == Condition::Unsettled {
            if self.transaction != TransactionStatus::Idle {
                self.simple("ROLLBACK");
            }
            let residue = self.residue;
            self.push_reset(residue);
            self.finish_reset().await;
        }
        self.condition() == Condition::Ready
    }

    /// Closes the connection and returns when PostgreSQL does not work for it any more: it has let
    /// the connection go, or has no such backend. After a failover nobody else tells; a timeout of
    /// the socket would, but it also passes while a statement runs that leaves its input unread.
    pub async fn see_off(self, terminator: &dyn Terminator) {
        let backend = self.backend().clone();
        tokio::select! {
            () = self.close() => {}
            () = end(&backend, terminator) => {
                tracing::info!(?backend, "gave up the connection of a backend that is gone");
            }
        }
    }

    /// Whether nothing is under way except possibly a reset that was sent in whole.
    fn is_at_rest(&self) -> bool {
        self.outstanding == 0 && self.channel.outbound.is_empty() && !self.unsynced
    }

    /// Cancels what runs and reads up to its end.
    async fn interrupt(&mut self, terminator: &dyn Terminator) {
        if self.unsynced {
            self.abort();
        }
        // Whatever the statement was, nobody has seen its end.
        self.residue = Residue::Everything;
        self.stirred = true;
        let canceller = self.canceller.clone();
        let cancel = timeout(GRACE, canceller.cancel());
        let (outcome, drained) =
            tokio::join!(cancel, self.drain(Instant::now() + GRACE, Errors::Expected));
        if !matches!(outcome, Ok(Ok(()))) {
            tracing::warn!(
                backend = self.backend().process_id,
                "a cancel request failed"
            );
        }
        // A stream that has failed leaves nothing to terminate.
        let runs_on = !drained && !self.broken;
        if !drained || !matches!(outcome, Ok(Ok(()))) {
            self.give_up();
        }
        if runs_on {
            tracing::info!(
                backend = self.backend().process_id,
                "a statement did not stop when it was cancelled; its backend is terminated"
            );
            terminator.terminate(self.backend().clone()).await;
        }
        self.reset_answers = 0;
    }

    /// Waits for the answers of a reset that has been queued.
    pub(crate) async fn finish_reset(&mut self) {
        let soft = self.residue != Residue::Everything;
        if self.drain(Instant::now() + RESET, Errors::Fatal).await {
            self.reset_answers = 0;
            self.used = false;
            self.stirred = false;
            self.names = Names::Own;
            if self.marked {
                self.give_up();
            }
            let more = soft && self.drained_rows > CHECK_ROWS;
            self.residue = if more {
                Residue::Everything
            } else {
                Residue::None
            };
        } else {
            tracing::warn!(
                backend = self.backend().process_id,
                "a session could not be reset"
            );
            self.give_up();
        }
    }

    /// Reads until nothing is outstanding; `false` when that failed.
    async fn drain(&mut self, deadline: Instant, errors: Errors) -> bool {
        while self.outstanding > 0 {
            match self.next(Some(deadline)).await {
                Ok(tag::READY_FOR_QUERY) if self.ready_for_query().is_ok() => {}
                Ok(tag::ERROR_RESPONSE) if errors == Errors::Fatal => {
                    // The caller has deallocated the check: it is there again after the next.
                    if !ServerError::read(self.channel.inbound.body()).is("26000") {
                        return false;
                    }
                    self.drained_rows = CHECK_ROWS + 1;
                }
                Ok(tag::READY_FOR_QUERY) | Err(_) => return false,
                Ok(tag::DATA_ROW) => self.drained_rows = self.drained_rows.saturating_add(1),
                Ok(_) => {}
            }
        }
        true
    }
}

/// Has a backend ended until it is gone, for whatever reason nobody has told it yet.
async fn end(backend: &Backend, terminator: &dyn Terminator) {
    let mut pause = PATIENCE;
    loop {
        sleep(pause).await;
        pause = match terminator.terminate(backend.clone()).await {
            Fate::Gone => return,
            Fate::Told => AGAIN,
            Fate::Unknown => UNASKED,
        };
    }
}

/// What an error means while answers are read that nobody wants.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    /// The statement was cancelled, as it should.
    Expected,
    /// A statement of our own failed.
    Fatal,
}
