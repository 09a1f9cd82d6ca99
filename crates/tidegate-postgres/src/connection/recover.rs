//! Recovery: brings a connection from any state back to idle, or closes it.

use std::time::Duration;

use tidegate_sql::Error;
use tidegate_wire::server_error::ServerError;
use tidegate_wire::{Backend, BackendTerminator, TerminateOutcome, outage, tag};
use tokio::time::{Instant, sleep, timeout};

use super::{Connection, ConnectionState, TransactionStatus};
use crate::statement::SideEffects;

/// How long a cancelled statement may take to end before its backend is terminated.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
const RESET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a backend may take to close its connection before it is terminated.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The delay before the next termination request, if the result of the previous request is unknown.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The delay before the next termination request, if PostgreSQL signalled the backend after the
/// previous request.
const REPEAT_DELAY: Duration = Duration::from_secs(30);

impl Connection {
    /// Brings the connection back to [`ConnectionState::Idle`]. Cancels a running statement and
    /// waits until the cancel request cannot hit a later statement. Terminates the backend if the
    /// statement still runs after a second. Then rolls back an open transaction and resets the
    /// session.
    ///
    /// Returns whether the connection can be used. If not, the calling function must drop it.
    pub async fn recover(&mut self, terminator: &dyn BackendTerminator) -> bool {
        if self.state() == ConnectionState::NeedsRecovery && !self.is_quiet() {
            self.cancel_and_drain(terminator).await;
        }
        if self.state() == ConnectionState::Resetting {
            self.finish_reset().await;
        }
        // The state is also `NeedsRecovery` after a soft reset has found a statement that the
        // caller prepared. A full reset is then needed.
        if self.state() == ConnectionState::NeedsRecovery {
            if self.session.transaction() != TransactionStatus::Idle {
                self.push_simple("ROLLBACK");
            }
            self.push_reset();
            self.finish_reset().await;
        }
        self.state() == ConnectionState::Idle
    }

    /// Prepares the connection for a second attempt to run a statement. A connection of members is
    /// reset, because code that the first attempt ran may have replaced the statement that seals
    /// the claims. This code may also have raised the error on purpose to get a second attempt.
    pub(crate) async fn rewind(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if self.state() == ConnectionState::Resetting {
            self.finish_reset().await;
        }
        if self.session.transaction() != TransactionStatus::Idle {
            self.push_simple("ROLLBACK");
            while self.next(deadline).await? != tag::READY_FOR_QUERY {}
            self.ready_for_query()?;
        }
        if self.session.is_sealing()
            && self.state() != ConnectionState::Closed
            && self.session.side_effects() > SideEffects::None
        {
            self.push_reset();
            self.finish_reset().await;
        }
        match self.state() {
            ConnectionState::Closed => Err(outage("the session was lost between two attempts")),
            _ => Ok(()),
        }
    }

    /// Closes the connection and waits until PostgreSQL runs no statement of the connection. The
    /// wait ends when PostgreSQL has closed the connection, or reports that the backend does not
    /// exist. The second condition is needed after a failover, because the old server may never
    /// close the connection. A socket timeout does not help, because it also expires while a
    /// running statement does not read from the socket.
    pub async fn close_and_wait(self, terminator: &dyn BackendTerminator) {
        let backend = self.backend().clone();
        tokio::select! {
            () = self.close() => {}
            () = terminate_until_gone(&backend, terminator) => {
                tracing::info!(?backend, "backend no longer exists; closed its connection");
            }
        }
    }

    /// Whether PostgreSQL runs nothing for the connection and all queued messages were sent.
    fn is_quiet(&self) -> bool {
        !self.session.may_run() && self.channel.outbound.is_empty()
    }

    /// Cancels the running statement and reads the rest of its output.
    async fn cancel_and_drain(&mut self, terminator: &dyn BackendTerminator) {
        if self.session.is_pipeline_open() {
            self.abort();
        }
        // The cancelled statement may have had any side effect.
        self.session.note_side_effects(SideEffects::Everything);
        let canceller = self.canceller.clone();
        let cancel = timeout(CANCEL_TIMEOUT, canceller.cancel());
        let (outcome, drained) = tokio::join!(
            cancel,
            self.drain(Instant::now() + CANCEL_TIMEOUT, Errors::Expected)
        );
        let error = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(elapsed) => Some(elapsed.to_string()),
        };
        if let Some(error) = &error {
            let backend = self.backend().process_id;
            tracing::warn!(backend, error, "cancel request failed");
        }
        // The backend is terminated only if the connection still works. If the connection has
        // failed, the backend ends by itself.
        let still_runs = !drained && !self.session.is_closed();
        if !drained || error.is_some() {
            self.mark_closed();
        }
        if still_runs {
            tracing::info!(
                backend = self.backend().process_id,
                "statement ignored the cancel request; terminating its backend"
            );
            terminator.terminate(self.backend().clone()).await;
        }
        self.session.end_drain();
    }

    /// Waits for the responses of a reset that has been queued.
    pub(crate) async fn finish_reset(&mut self) {
        if self
            .drain(Instant::now() + RESET_TIMEOUT, Errors::Fatal)
            .await
        {
            self.session.end_reset(Instant::now());
            if self.session.is_closed() && self.session.is_sealing() {
                tracing::warn!(
                    backend = self.backend().process_id,
                    "SQL prepared a statement in a session of members; connection closed"
                );
            }
        } else {
            tracing::warn!(
                backend = self.backend().process_id,
                "session reset failed; connection closed"
            );
            self.mark_closed();
        }
    }

    /// Reads until no response is outstanding. Returns `false` if a read fails, the deadline
    /// passes, or an error arrives that `errors` does not allow.
    async fn drain(&mut self, deadline: Instant, errors: Errors) -> bool {
        while self.session.is_waiting() {
            match self.next(Some(deadline)).await {
                Ok(tag::READY_FOR_QUERY) if self.ready_for_query().is_ok() => {}
                Ok(tag::ERROR_RESPONSE) if errors == Errors::Fatal => {
                    // SQLSTATE 26000 means that a statement of the caller deallocated the prepared
                    // `CHECK`. The next reset prepares it again.
                    if !ServerError::read(self.channel.inbound.body()).is("26000") {
                        return false;
                    }
                    self.session.note_check_deallocated();
                }
                Ok(tag::READY_FOR_QUERY) | Err(_) => return false,
                Ok(tag::DATA_ROW) => self.session.count_reset_row(),
                Ok(_) => {}
            }
        }
        true
    }
}

/// Requests the termination of a backend repeatedly, until the backend no longer exists.
async fn terminate_until_gone(backend: &Backend, terminator: &dyn BackendTerminator) {
    let mut delay = CLOSE_TIMEOUT;
    loop {
        sleep(delay).await;
        delay = match terminator.terminate(backend.clone()).await {
            TerminateOutcome::Gone => return,
            TerminateOutcome::Requested => REPEAT_DELAY,
            TerminateOutcome::Unknown => RETRY_DELAY,
        };
    }
}

/// How to treat errors while responses are discarded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    /// Errors are ignored, because the statement was cancelled.
    Expected,
    /// An error makes the reset fail, because a reset runs only statements of the service. The
    /// exception is 26000: the caller's statement may have deallocated the prepared `CHECK`.
    Fatal,
}
