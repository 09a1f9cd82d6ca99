//! From any state back to a connection that can be lent, or to a closed one.

use std::time::Duration;

use tidegate_wire::rejection::ServerError;
use tidegate_wire::{Backend, TerminateOutcome, Terminator, tag};
use tokio::time::{Instant, sleep, timeout};

use super::{Condition, Connection, TransactionStatus};
use crate::session::reset::Residue;

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
            if self.session.transaction() != TransactionStatus::Idle {
                self.simple("ROLLBACK");
            }
            self.push_reset();
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
                tracing::info!(?backend, "backend no longer exists; closed its connection");
            }
        }
    }

    /// Whether nothing is under way except possibly a reset that was sent in whole.
    fn is_at_rest(&self) -> bool {
        !self.session.may_run() && self.channel.outbound.is_empty()
    }

    /// Cancels what runs and reads up to its end.
    async fn interrupt(&mut self, terminator: &dyn Terminator) {
        if self.session.is_pipeline_open() {
            self.abort();
        }
        // The end of the statement, whatever it was, is not known.
        self.session.leave(Residue::Everything);
        let canceller = self.canceller.clone();
        let cancel = timeout(GRACE, canceller.cancel());
        let (outcome, drained) =
            tokio::join!(cancel, self.drain(Instant::now() + GRACE, Errors::Expected));
        if !matches!(outcome, Ok(Ok(()))) {
            tracing::warn!(backend = self.backend().process_id, "cancel request failed");
        }
        // A stream that has failed leaves nothing to terminate.
        let runs_on = !drained && !self.session.is_lost();
        if !drained || !matches!(outcome, Ok(Ok(()))) {
            self.give_up();
        }
        if runs_on {
            tracing::info!(
                backend = self.backend().process_id,
                "statement ignored the cancel request; terminating its backend"
            );
            terminator.terminate(self.backend().clone()).await;
        }
        self.session.end_interruption();
    }

    /// Waits for the answers of a reset that has been queued.
    pub(crate) async fn finish_reset(&mut self) {
        if self.drain(Instant::now() + RESET, Errors::Fatal).await {
            self.session.end_reset();
        } else {
            tracing::warn!(
                backend = self.backend().process_id,
                "session reset failed; connection closed"
            );
            self.give_up();
        }
    }

    /// Reads until nothing is outstanding; `false` when that failed.
    async fn drain(&mut self, deadline: Instant, errors: Errors) -> bool {
        while self.session.is_waiting() {
            match self.next(Some(deadline)).await {
                Ok(tag::READY_FOR_QUERY) if self.ready_for_query().is_ok() => {}
                Ok(tag::ERROR_RESPONSE) if errors == Errors::Fatal => {
                    // The caller has deallocated the check; the next reset prepares it again.
                    if !ServerError::read(self.channel.inbound.body()).is("26000") {
                        return false;
                    }
                    self.session.lose_check();
                }
                Ok(tag::READY_FOR_QUERY) | Err(_) => return false,
                Ok(tag::DATA_ROW) => self.session.count_reset_row(),
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
            TerminateOutcome::Gone => return,
            TerminateOutcome::Requested => AGAIN,
            TerminateOutcome::Unknown => UNASKED,
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
