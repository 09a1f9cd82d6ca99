//! The driver's side of a multiplexed connection: the connection, and the pipelines that were sent.
//! Only the driver's task uses this side, so no request waits for a lock during I/O.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::PooledConnection;
use tidegate_wire::server_error::ServerError;
use tidegate_wire::{body, tag};
use tokio::time::Instant;

use super::pending::{PendingPipeline, PipelineFault};
use super::send_queue::SendQueue;
use super::slot::SlotState;
use crate::connection::{Connection, TransactionStatus};
use crate::connector::RoleConnector;
use crate::metadata::MetadataCache;
use crate::session::take_reported_ddl;
use crate::statement::SideEffects;

/// The maximum number of bytes of rows that are buffered for a pipeline.
const MAX_BUFFERED: usize = 1 << 20;
/// If the rows of a pipeline have more bytes than this, its statements are not multiplexed for a
/// while, so that their rows are streamed.
const MAX_MULTIPLEXED: usize = 64 << 10;
/// The connection counts as stuck if its first pipeline runs for longer than this.
const MAX_RUN: Duration = Duration::from_millis(100);
/// The connection counts as stuck if its first pipeline was requested longer ago than this.
const MAX_WAIT: Duration = Duration::from_millis(200);
/// A response that takes longer than this counts as slow.
const SLOW: Duration = Duration::from_millis(20);
const SETUP_TIMEOUT: Duration = Duration::from_secs(1);

/// The setup of the session. The session is read-only, so PostgreSQL refuses all writes (25006).
/// This is necessary because a pipeline may run a second time on another connection. The isolation
/// level gives the statements of a pipeline one snapshot without `BEGIN` and `COMMIT` (PostgreSQL,
/// "Transaction Isolation").
const SETUP: &str = "SET default_transaction_read_only = on; \
    SET default_transaction_isolation = 'repeatable read'";

/// The SQLSTATE `read_only_sql_transaction`.
const READ_ONLY_TRANSACTION: &str = "25006";

pub(super) struct Multiplexed {
    pooled: PooledConnection<RoleConnector>,
    metadata: Arc<MetadataCache>,
    /// The pipelines that were sent and have no response yet, in the order in which they were sent.
    pipelines: VecDeque<PendingPipeline>,
    /// The time from which the run time of the first pipeline is measured: the time of the last
    /// response, or the time of sending if no pipeline was outstanding then.
    last_response: Instant,
}

/// The connection is unusable.
pub(super) struct ConnectionFailed;

impl Multiplexed {
    /// Sets up the session of a connection. Returns the connection for the driver, and the queue
    /// for requests. Returns `None` on failure.
    pub(super) async fn open(
        mut pooled: PooledConnection<RoleConnector>,
        metadata: Arc<MetadataCache>,
        switch: Option<&'static str>,
    ) -> Option<(Self, SendQueue)> {
        // The side effects are recorded before the setup, so that the settings are reset even if
        // the setup fails halfway.
        pooled.session.note_side_effects(SideEffects::Session);
        pooled.push_simple(SETUP);
        pooled.prepare_switch(switch).ok()?;
        let deadline = Some(Instant::now() + SETUP_TIMEOUT);
        for _ in 0..2 {
            loop {
                match pooled.next(deadline).await.ok()? {
                    tag::READY_FOR_QUERY => break,
                    tag::ERROR_RESPONSE => {
                        pooled.forget_internal();
                        return None;
                    }
                    _ => {}
                }
            }
            pooled.ready_for_query().ok()?;
        }
        let statements = pooled.session.statements.take();
        let backend = pooled.backend().process_id;
        let multiplexed = Self {
            pooled,
            metadata,
            pipelines: VecDeque::new(),
            last_response: Instant::now(),
        };
        Some((multiplexed, SendQueue::new(statements, backend)))
    }

    /// Whether all pipelines that were sent have their responses.
    pub(super) fn is_idle(&self) -> bool {
        self.pipelines.is_empty()
    }

    /// Whether requests wait in the pool for a connection, or the pool wants to close the
    /// multiplexed connection.
    pub(super) fn is_wanted(&self) -> bool {
        self.pooled.is_wanted()
    }

    /// Whether the connection must be reset, because it serves members and its last reset is too
    /// long ago.
    pub(super) fn is_periodic_reset_due(&self) -> bool {
        self.pooled.is_periodic_reset_due()
    }

    /// Moves the queued pipelines to the send buffer.
    pub(super) fn load(&mut self, queue: &mut SendQueue) {
        if self.pipelines.is_empty() {
            self.last_response = Instant::now();
        }
        let pipelines = queue.drain(&mut self.pooled.channel.outbound);
        self.pooled.expect_responses(pipelines.len());
        self.pipelines.extend(pipelines);
    }

    /// Sends and receives as much as possible without waiting. Returns `Ready` only if the
    /// connection has failed.
    pub(super) fn poll(
        &mut self,
        state: &Mutex<SlotState>,
        cx: &mut Context<'_>,
    ) -> Poll<ConnectionFailed> {
        loop {
            match self.pooled.channel.poll_exchange(cx) {
                Poll::Ready(Ok(())) => {
                    if let Err(broken) = self.receive(state) {
                        return Poll::Ready(broken);
                    }
                }
                Poll::Ready(Err(_)) => {
                    self.pooled.mark_closed();
                    return Poll::Ready(ConnectionFailed);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Processes the messages that have arrived.
    fn receive(&mut self, state: &Mutex<SlotState>) -> Result<(), ConnectionFailed> {
        let mut ended = Vec::new();
        let mut outcome = self.read(&mut ended);
        if !ended.is_empty() {
            outcome = outcome.and(self.finish(ended, state));
        }
        // Pure reads cannot change a definition. So if a definition has changed, one of the
        // statements was not pure.
        if self.pooled.session.has_ddl() {
            return Err(ConnectionFailed);
        }
        outcome
    }

    fn read(&mut self, ended: &mut Vec<PendingPipeline>) -> Result<(), ConnectionFailed> {
        loop {
            match self.pooled.channel.inbound.advance() {
                Ok(Some(tag::READY_FOR_QUERY)) => ended.push(self.end_pipeline()?),
                Ok(Some(tag)) => self.read_one(tag)?,
                Ok(None) => return Ok(()),
                Err(_) => return Err(self.protocol_error()),
            }
        }
    }

    fn read_one(&mut self, tag: u8) -> Result<(), ConnectionFailed> {
        let connection: &mut Connection = &mut self.pooled;
        match connection.handle_asynchronous(tag) {
            // PostgreSQL reports that a setting has changed. It may be the setting that makes the
            // session read-only, so the connection is no longer multiplexed.
            Ok(true)
                if tag == tag::PARAMETER_STATUS
                    && !body::is_role_status(connection.channel.inbound.body()) =>
            {
                return Err(ConnectionFailed);
            }
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(_) => return Err(self.protocol_error()),
        }
        let Some(pipeline) = self.pipelines.front_mut() else {
            return Err(self.protocol_error());
        };
        if pipeline.consume_switch(tag) {
            return Ok(());
        }
        let inbound = &connection.channel.inbound;
        match tag {
            tag::DATA_ROW => {
                pipeline.buffer_row(inbound.message());
                if pipeline.size() > MAX_BUFFERED {
                    pipeline.fail(PipelineFault::Large);
                    return Err(ConnectionFailed);
                }
            }
            tag::ROW_DESCRIPTION | tag::NO_DATA => {
                let fields = match tag {
                    tag::NO_DATA => None,
                    _ => body::row_description(inbound.body()),
                };
                let matches = pipeline
                    .current()
                    .is_some_and(|step| fields.as_ref() == Some(&step.prepared.description.fields));
                if !matches {
                    pipeline.fail(PipelineFault::Stale);
                }
            }
            tag::ERROR_RESPONSE => {
                let error = ServerError::read(inbound.body());
                // A fatal error ends the session for a reason outside of the pipeline: the backend
                // was terminated, or PostgreSQL shuts down.
                if error.rejection.fatal {
                    return Err(self.protocol_error());
                }
                // If sealing fails, the connection must end: code that a statement called may have
                // replaced the prepared statement that seals claims. The replacement could read the
                // token, which is valid as long as the backend exists.
                if pipeline.is_switching() && connection.session.is_sealing() {
                    return Err(self.protocol_error());
                }
                pipeline.fail(fault(&error));
            }
            tag::COMMAND_COMPLETE => pipeline.complete(),
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => return Err(self.protocol_error()),
        }
        Ok(())
    }

    fn end_pipeline(&mut self) -> Result<PendingPipeline, ConnectionFailed> {
        let connection: &mut Connection = &mut self.pooled;
        let ready = connection.ready_for_query().is_ok();
        if !ready || connection.session.transaction() != TransactionStatus::Idle {
            return Err(self.protocol_error());
        }
        self.pipelines
            .pop_front()
            .ok_or_else(|| self.protocol_error())
    }

    fn protocol_error(&mut self) -> ConnectionFailed {
        self.pooled.mark_closed();
        ConnectionFailed
    }

    /// Passes the results of pipelines that ended to their requests.
    fn finish(
        &mut self,
        ended: Vec<PendingPipeline>,
        state: &Mutex<SlotState>,
    ) -> Result<(), ConnectionFailed> {
        if let Some(queue) = &mut state.lock().queue {
            for pipeline in &ended {
                queue.end(pipeline);
            }
        }
        let now = Instant::now();
        let steps: usize = ended.iter().map(|pipeline| pipeline.steps.len()).sum();
        let each = (now - self.last_response) / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        self.last_response = now;
        for pipeline in ended {
            // A changed definition that was committed in the meantime may have made a statement
            // impure. The later pipelines have then run in a session with unknown side effects.
            let impure = pipeline.steps.iter().any(|step| {
                let untrusted = &step.prepared.untrusted;
                self.metadata.purity.is_impure(&step.statement, untrusted)
            });
            deliver(pipeline, each, now);
            if impure {
                self.pooled.session.note_side_effects(SideEffects::Session);
                return Err(ConnectionFailed);
            }
        }
        Ok(())
    }

    /// Whether the first pipeline runs for longer than [`MAX_RUN`], or was requested longer than
    /// [`MAX_WAIT`] ago.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        let waits = |pipeline: &PendingPipeline| {
            self.runs_too_long(pipeline, now) || now - pipeline.requested > MAX_WAIT
        };
        self.pipelines.front().is_some_and(waits)
    }

    /// Whether `pipeline`, the first one, runs for longer than [`MAX_RUN`].
    fn runs_too_long(&self, pipeline: &PendingPipeline, now: Instant) -> bool {
        now - pipeline.requested.max(self.last_response) > MAX_RUN
    }

    /// Returns the connection to the pool, which cancels a running statement. Requests without a
    /// response run again on connections of their own.
    pub(super) fn end(mut self, queue: Option<SendQueue>) {
        let now = Instant::now();
        if let Some(pipeline) = self.pipelines.front() {
            let is_large = pipeline.fault() == Some(PipelineFault::Large);
            if is_large || self.runs_too_long(pipeline, now) {
                pipeline.suspend(now);
            }
        }
        match queue.and_then(SendQueue::into_statements) {
            Some(statements) => self.pooled.session.statements = statements,
            // The session may hold prepared statements that are missing from the statement cache.
            None => self
                .pooled
                .session
                .note_side_effects(SideEffects::Everything),
        }
        let ddl_guard = take_reported_ddl(&mut self.pooled, &self.metadata);
        if ddl_guard.is_some() {
            self.metadata.forget();
        }
    }
}

/// The reason why a pipeline failed with this error.
fn fault(error: &ServerError) -> PipelineFault {
    match () {
        () if error.is_stale_statement() => PipelineFault::Stale,
        () if error.is(READ_ONLY_TRANSACTION) => PipelineFault::Writes,
        () => PipelineFault::Refused,
    }
}

/// Passes the rows of a pipeline to its request and records the latency of its statements. After a
/// failure the request receives nothing. `each` is the time that each statement took.
fn deliver(pipeline: PendingPipeline, each: Duration, now: Instant) {
    match pipeline.fault() {
        // The request receives no rows, and runs the pipeline again on a connection of its own.
        Some(PipelineFault::Refused | PipelineFault::Stale) => return,
        Some(PipelineFault::Writes | PipelineFault::Large) => return pipeline.suspend(now),
        None if !pipeline.is_complete() => return,
        None => {}
    }
    if pipeline.size() > MAX_MULTIPLEXED {
        pipeline.suspend(now);
    }
    for step in &pipeline.steps {
        let latency = &step.prepared.description.latency;
        if each > SLOW {
            latency.record_slow(now);
        } else {
            latency.record_multiplexed(each);
        }
    }
    pipeline.deliver();
}
