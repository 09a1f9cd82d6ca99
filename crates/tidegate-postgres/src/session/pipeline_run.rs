//! Exchanges the messages of a pipeline. Each statement of the pipeline is a *step*.

use std::time::Duration;

use postgres_protocol::message::frontend;
use tidegate_sql::{
    Commit, Completion, Error, Flow, InputError, Mode, PipelineError, RowSink, TransactionOutcome,
};
use tidegate_values::RawRow;
use tidegate_wire::channel::ReadError;
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;
use tokio::time::{Instant, timeout};

use super::execution::{Execution, SEND_AHEAD, SetError};
use super::pipeline_request::PipelineRequest;
use crate::connection::{Connection, SNAPSHOT};

/// How long the cancel request may take, and how long the cancelled pipeline may then take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Ends a snapshot transaction.
const COMMIT: &str = "COMMIT";

/// One attempt to run a pipeline. It has the connection to itself until the transaction has ended.
pub(super) struct PipelineRun<'a, 's> {
    pub(super) connection: &'a mut Connection,
    pub(super) request: &'a PipelineRequest<'a>,
    /// The sink of each step.
    sinks: &'a mut [&'s mut dyn RowSink],
    pub(super) steps: Vec<Execution<'a>>,
    deadline: Option<Instant>,
    /// The index of the step whose parameter sets are queued next.
    queuing: usize,
    /// The index of the step whose responses come next.
    pub(super) current: usize,
    end: TransactionEnd,
    /// How many `ReadyForQuery` messages are outstanding.
    syncs: u8,
    /// Whether any part of the pipeline has been sent.
    sent: bool,
    /// Whether PostgreSQL refused a statement, so that the transaction is certainly rolled back.
    undone: bool,
    /// The error of the current step or of the commit.
    pub(super) failure: Option<ServerError>,
    /// Whether the deadline has passed and the running statement was cancelled.
    pub(super) overdue: bool,
    /// The parameter set that could not be sent: the index of its step, and the error.
    pub(super) invalid: Option<(usize, InputError)>,
    /// The first error that a sink reported too late to stop the commit: the index of the step, and
    /// the error.
    pub(super) refused: Option<(usize, Error)>,
}

/// How far the end of the transaction has been queued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionEnd {
    /// The end is not queued, because parameter sets are still to be queued.
    Open,
    /// The end is not queued, because the commit waits until the sinks have taken all rows.
    Held,
    /// The end is queued: a commit or an abort. Also used after the pipeline was withdrawn.
    Queued,
}

impl<'a, 's> PipelineRun<'a, 's> {
    pub(super) fn new(
        connection: &'a mut Connection,
        request: &'a PipelineRequest<'a>,
        steps: Vec<Execution<'a>>,
        sinks: &'a mut [&'s mut dyn RowSink],
    ) -> Self {
        Self {
            connection,
            request,
            sinks,
            steps,
            deadline: request.deadline(),
            queuing: 0,
            current: 0,
            end: TransactionEnd::Open,
            syncs: 0,
            sent: false,
            undone: false,
            failure: None,
            overdue: false,
            invalid: None,
            refused: None,
        }
    }

    /// Whether the commit waits until the sinks have taken all rows. If a sink refuses a row, the
    /// writes are undone.
    fn waits(&self) -> bool {
        let has_rows = |step: &Execution<'_>| !step.prepared.description.columns.is_empty();
        self.request.commit == Commit::AfterRows
            && self.request.has_effects()
            && self.steps.iter().any(has_rows)
    }

    /// The error of the pipeline after the stream failed, the deadline passed or a sink failed.
    pub(super) fn interrupted(&self, error: Error) -> PipelineError {
        if self.is_in_doubt() {
            return PipelineError {
                step: None,
                error,
                outcome: TransactionOutcome::Unknown,
            };
        }
        self.rolled_back(error)
    }

    /// Whether the commit was sent and its result is unknown.
    fn is_in_doubt(&self) -> bool {
        self.end == TransactionEnd::Queued && self.request.has_effects() && !self.undone
    }

    pub(super) fn rolled_back(&self, error: Error) -> PipelineError {
        PipelineError {
            step: (self.current < self.steps.len()).then_some(self.current),
            ..error.into()
        }
    }

    /// Handles the result of a sink. If the pipeline has effects and the commit does not wait for
    /// the sinks, an error of a sink cannot stop the commit. The error is then stored, and
    /// `Ok(None)` is returned. The pipeline discards further rows and waits for the outcome of the
    /// transaction. In all other cases the error is returned.
    fn sink_result<T>(&mut self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Ok(result) => Ok(Some(result)),
            Err(error) if self.request.has_effects() && !self.waits() => {
                self.refused.get_or_insert((self.current, error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl PipelineRun<'_, '_> {
    /// Starts the pipeline and queues its prefix.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        self.connection.begin_pipeline();
        if self.request.mode == Mode::Snapshot {
            self.connection.prepare_internal(&[SNAPSHOT, COMMIT])?;
        }
        let begin = (self.request.mode == Mode::Snapshot).then_some(Mode::Snapshot);
        let switch = self.request.tasks.first().and_then(|task| task.switch);
        self.connection.push_prefix(begin, switch)
    }

    /// Sends the statements and processes the responses up to the last `ReadyForQuery`.
    pub(super) async fn exchange(&mut self) -> Result<(), Error> {
        loop {
            self.fill()?;
            if self.end == TransactionEnd::Queued && self.syncs == 0 {
                return Ok(());
            }
            let tag = match self.connection.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    // After this point an invalid parameter set requires a rollback, because a part
                    // of the pipeline was sent.
                    self.sent = true;
                    if let Err(halt) = self.connection.channel.exchange(self.deadline).await {
                        if matches!(halt, ReadError::Deadline) && self.cancel().await {
                            continue;
                        }
                        let ended = self.connection.read_error(halt);
                        let last = self.steps.len() - 1;
                        let task = self.steps[self.current.min(last)].task;
                        return Err(self
                            .connection
                            .stream_error(self.failure.take(), ended, task));
                    }
                    continue;
                }
                Err(error) => return Err(self.connection.read_error(error.into())),
            };
            if tag == tag::READY_FOR_QUERY {
                self.connection.ready_for_query()?;
                self.syncs = self.syncs.saturating_sub(1);
                if self.syncs == 0 {
                    return Ok(());
                }
            } else if !self.connection.handle_asynchronous(tag)? {
                self.handle_message(tag).await?;
            } else if self.connection.session.prefix.is_refused() {
                // After the error, PostgreSQL skips everything up to the Sync, so the Sync is
                // queued now.
                self.end_transaction()?;
            }
        }
    }

    /// Cancels the running statement after the deadline has passed. PostgreSQL then has [`GRACE`]
    /// to report the end of the statement and of the transaction. Returns `false` if the cancel
    /// request takes longer than [`GRACE`], or a statement was cancelled before.
    async fn cancel(&mut self) -> bool {
        if self.overdue {
            return false;
        }
        self.overdue = true;
        let cancelled = timeout(GRACE, self.connection.cancel_running()).await;
        self.deadline = Some(Instant::now() + GRACE);
        cancelled.is_ok()
    }

    /// Queues parameter sets until [`SEND_AHEAD`] is reached. After the last set, queues the end of
    /// the transaction, or a Flush if the commit waits for the sinks.
    fn fill(&mut self) -> Result<(), Error> {
        while self.end == TransactionEnd::Open
            && self.connection.channel.outbound.len() < SEND_AHEAD
        {
            let index = self.queuing;
            let Some(step) = self.steps.get_mut(index) else {
                if self.waits() {
                    self.end = TransactionEnd::Held;
                    frontend::flush(&mut self.connection.channel.outbound);
                } else {
                    self.end_transaction()?;
                }
                break;
            };
            match self.connection.push_next_set(step) {
                Ok(()) if step.progress.next == step.task.bound.sets.len() => self.queuing += 1,
                Ok(()) => {}
                Err(SetError::Internal(error)) => return Err(error),
                Err(SetError::Input(invalid)) => {
                    self.invalid = Some((index, invalid));
                    self.end = TransactionEnd::Queued;
                    if self.sent || self.steps.iter().any(|step| step.unconfirmed) {
                        self.connection.abort();
                        self.syncs = 1;
                    } else {
                        self.connection.withdraw();
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues the end of the transaction, unless it is queued already. If a reset is due, queues it
    /// after the end.
    fn end_transaction(&mut self) -> Result<(), Error> {
        if self.end == TransactionEnd::Queued {
            return Ok(());
        }
        self.end = TransactionEnd::Queued;
        let resets = self.connection.session.side_effects().is_reset_due();
        if self.request.mode == Mode::Snapshot {
            if resets {
                // After an error PostgreSQL skips everything up to this Sync, and COMMIT then rolls
                // back. Without this Sync PostgreSQL would skip the COMMIT, and the reset would
                // find a failed transaction.
                self.connection.sync();
                self.syncs += 1;
                self.connection.begin_pipeline();
            }
            self.connection.push_internal(COMMIT)?;
        }
        self.connection.sync();
        self.syncs += 1;
        if resets {
            self.connection.push_reset();
        }
        Ok(())
    }

    async fn handle_message(&mut self, tag: u8) -> Result<(), Error> {
        if tag == tag::ERROR_RESPONSE {
            return self.handle_error();
        }
        // After an error PostgreSQL skips the other statements, so the remaining messages belong to
        // the COMMIT.
        if self.failure.is_some() || self.connection.session.prefix.is_refused() {
            return Ok(());
        }
        let discards_rows = self.refused.is_some();
        // The response after the last step belongs to the COMMIT, which has no sink.
        let step = self.steps.get_mut(self.current);
        let (Some(step), Some(sink)) = (step, self.sinks.get_mut(self.current)) else {
            return Ok(());
        };
        match tag {
            tag::DATA_ROW if discards_rows => {}
            tag::DATA_ROW => self.push_row().await?,
            tag::BIND_COMPLETE => {
                step.bound += 1;
                if step.announces_at_bind() && !discards_rows {
                    let result = step.announce(&mut **sink);
                    self.sink_result(result)?;
                }
            }
            tag::NO_DATA | tag::ROW_DESCRIPTION => {
                let fields = self.connection.fields(tag)?;
                if !discards_rows {
                    let result = step.confirm(&fields, &mut **sink);
                    self.failure = step.failure.take();
                    self.sink_result(result)?;
                }
            }
            tag::COMMAND_COMPLETE => {
                if step.complete_set(self.connection.channel.inbound.body()) {
                    return self.end_step();
                }
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => return Err(self.connection.unexpected(tag)),
        }
        Ok(())
    }

    fn handle_error(&mut self) -> Result<(), Error> {
        let mut error = ServerError::read(self.connection.channel.inbound.body());
        if let Some(step) = self.steps.get(self.current) {
            error.rejection.place = step.path_of_unreadable_value(&error);
            self.undone = true;
        }
        self.failure.get_or_insert(error);
        self.end_transaction()
    }

    async fn push_row(&mut self) -> Result<(), Error> {
        let current = self.current;
        let (step, sink) = (&mut self.steps[current], &mut *self.sinks[current]);
        let columns = step.prepared.description.columns.len();
        let announced = step.announce(sink);
        let Some(row) = RawRow::of_message(columns, self.connection.channel.inbound.body()) else {
            return Err(self
                .connection
                .protocol_error("a row of another description"));
        };
        let result = announced.and_then(|()| sink.row(row));
        if self.sink_result(result)? == Some(Flow::Wait) {
            // While the sink is not ready, nothing is read from PostgreSQL, so PostgreSQL waits
            // too. The wait does not count against the deadline.
            let began = Instant::now();
            let result = self.sinks[current].ready().await;
            self.sink_result(result)?;
            let waited = began.elapsed();
            self.deadline = self.deadline.map(|deadline| deadline + waited);
        }
        Ok(())
    }

    /// Handles the end of a statement. After the last statement, queues the commit if it has waited
    /// for the sinks.
    fn end_step(&mut self) -> Result<(), Error> {
        let discards_rows = self.refused.is_some();
        let current = self.current;
        if !discards_rows {
            let (step, sink) = (&mut self.steps[current], &mut *self.sinks[current]);
            let affected_rows = step.affected;
            let result = step.announce(sink);
            let result = result.and_then(|()| sink.end(Completion { affected_rows }));
            self.sink_result(result)?;
        }
        self.current += 1;
        if self.current == self.steps.len() {
            self.end_transaction()?;
        }
        Ok(())
    }
}
