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

/// The timeout of the cancel request. After this request, the cancelled pipeline has the same time
/// to end.
const GRACE: Duration = Duration::from_secs(1);

/// Ends a snapshot transaction.
const COMMIT: &str = "COMMIT";

/// The progress of a pipeline.
pub(super) struct PipelineRun<'a> {
    pub(super) request: &'a PipelineRequest<'a>,
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

impl<'a> PipelineRun<'a> {
    pub(super) fn new(request: &'a PipelineRequest<'a>, steps: Vec<Execution<'a>>) -> Self {
        Self {
            request,
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

    /// Records the latency of the statements. Each statement is assumed to take an equal part of
    /// the time.
    pub(super) fn record_latency(&self) {
        let count = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        for step in &self.steps {
            let latency = &step.prepared.description.latency;
            latency.record_direct(step.began.elapsed() / count);
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

    /// Handles the result of a sink. An error of the sink is returned, unless it cannot stop the
    /// commit, because the commit does not wait for the sinks. In this case the error is stored,
    /// and `Ok(None)` is returned. The pipeline then discards further rows and waits for the
    /// outcome of the transaction.
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

impl Connection {
    /// Starts the pipeline and queues its prefix.
    pub(super) fn begin_steps(&mut self, run: &mut PipelineRun<'_>) -> Result<(), Error> {
        self.begin_pipeline();
        if run.request.mode == Mode::Snapshot {
            self.prepare_internal(&[SNAPSHOT, COMMIT])?;
        }
        let begin = (run.request.mode == Mode::Snapshot).then_some(Mode::Snapshot);
        let switch = run.request.tasks.first().and_then(|task| task.switch);
        self.push_prefix(begin, switch)
    }

    /// Sends the statements and processes the responses up to the last `ReadyForQuery`.
    pub(super) async fn exchange_steps(
        &mut self,
        run: &mut PipelineRun<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        loop {
            self.fill_steps(run)?;
            if run.end == TransactionEnd::Queued && run.syncs == 0 {
                return Ok(());
            }
            let tag = match self.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    // After this point an invalid parameter set requires a rollback, because a part
                    // of the pipeline was sent.
                    run.sent = true;
                    if let Err(halt) = self.channel.exchange(run.deadline).await {
                        if matches!(halt, ReadError::Deadline) && self.cancel_steps(run).await {
                            continue;
                        }
                        let ended = self.read_error(halt);
                        let last = run.steps.len() - 1;
                        let task = run.steps[run.current.min(last)].task;
                        return Err(self.stream_error(run.failure.take(), ended, task));
                    }
                    continue;
                }
                Err(error) => return Err(self.read_error(error.into())),
            };
            if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                run.syncs = run.syncs.saturating_sub(1);
                if run.syncs == 0 {
                    return Ok(());
                }
            } else if !self.handle_asynchronous(tag)? {
                self.take_step(tag, run, sinks).await?;
            } else if self.session.prefix.is_refused() {
                // After the error, PostgreSQL skips everything up to the Sync, so the Sync is
                // queued now.
                self.end_steps(run)?;
            }
        }
    }

    /// Cancels the running statement after the deadline has passed. PostgreSQL then has [`GRACE`]
    /// to report the statement and the outcome of the transaction. Returns `false` if the cancel
    /// request takes too long, or a statement was cancelled before.
    async fn cancel_steps(&mut self, run: &mut PipelineRun<'_>) -> bool {
        if run.overdue {
            return false;
        }
        run.overdue = true;
        let cancelled = timeout(GRACE, self.cancel_running()).await;
        run.deadline = Some(Instant::now() + GRACE);
        cancelled.is_ok()
    }

    /// Queues parameter sets until [`SEND_AHEAD`] is reached. After the last set, queues the end of
    /// the transaction, or a Flush if the commit waits for the sinks.
    fn fill_steps(&mut self, run: &mut PipelineRun<'_>) -> Result<(), Error> {
        while run.end == TransactionEnd::Open && self.channel.outbound.len() < SEND_AHEAD {
            let index = run.queuing;
            let Some(step) = run.steps.get_mut(index) else {
                if run.waits() {
                    run.end = TransactionEnd::Held;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.end_steps(run)?;
                }
                break;
            };
            match self.push_next_set(step) {
                Ok(()) if step.progress.next == step.task.bound.sets.len() => run.queuing += 1,
                Ok(()) => {}
                Err(SetError::Internal(error)) => return Err(error),
                Err(SetError::Input(invalid)) => {
                    run.invalid = Some((index, invalid));
                    run.end = TransactionEnd::Queued;
                    if run.sent || run.steps.iter().any(|step| step.unconfirmed) {
                        self.abort();
                        run.syncs = 1;
                    } else {
                        self.withdraw();
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues the end of the transaction, unless it is queued already. If a reset is due, queues it
    /// after the end.
    fn end_steps(&mut self, run: &mut PipelineRun<'_>) -> Result<(), Error> {
        if run.end == TransactionEnd::Queued {
            return Ok(());
        }
        run.end = TransactionEnd::Queued;
        let resets = self.session.side_effects().is_reset_due();
        if run.request.mode == Mode::Snapshot {
            if resets {
                // After an error PostgreSQL skips everything up to this Sync, and COMMIT then rolls
                // back. Without this Sync PostgreSQL would skip the COMMIT, and the reset would
                // find a failed transaction.
                self.sync();
                run.syncs += 1;
                self.begin_pipeline();
            }
            self.push_internal(COMMIT)?;
        }
        self.sync();
        run.syncs += 1;
        if resets {
            self.push_reset();
        }
        Ok(())
    }

    async fn take_step(
        &mut self,
        tag: u8,
        run: &mut PipelineRun<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        if tag == tag::ERROR_RESPONSE {
            return self.refuse_step(run);
        }
        // After an error, the remaining messages belong to the COMMIT.
        if run.failure.is_some() || self.session.prefix.is_refused() {
            return Ok(());
        }
        let discards_rows = run.refused.is_some();
        // The response after the last step belongs to the COMMIT, which has no sink.
        let (Some(step), Some(sink)) = (run.steps.get_mut(run.current), sinks.get_mut(run.current))
        else {
            return Ok(());
        };
        match tag {
            tag::DATA_ROW if discards_rows => {}
            tag::DATA_ROW => self.push_step_row(run, &mut **sink).await?,
            tag::BIND_COMPLETE => {
                step.bound += 1;
                if step.announces_at_bind() && !discards_rows {
                    let result = step.announce(&mut **sink);
                    run.sink_result(result)?;
                }
            }
            tag::NO_DATA | tag::ROW_DESCRIPTION => {
                let fields = self.fields(tag)?;
                if !discards_rows {
                    let result = step.confirm(&fields, &mut **sink);
                    run.failure = step.failure.take();
                    run.sink_result(result)?;
                }
            }
            tag::COMMAND_COMPLETE => {
                if step.complete_set(self.channel.inbound.body()) {
                    return self.end_step(run, &mut **sink);
                }
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => return Err(self.unexpected(tag)),
        }
        Ok(())
    }

    fn refuse_step(&mut self, run: &mut PipelineRun<'_>) -> Result<(), Error> {
        let mut error = ServerError::read(self.channel.inbound.body());
        if let Some(step) = run.steps.get(run.current) {
            error.rejection.place = step.unread(&error);
            run.undone = true;
        }
        run.failure.get_or_insert(error);
        self.end_steps(run)
    }

    async fn push_step_row(
        &mut self,
        run: &mut PipelineRun<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let step = &mut run.steps[run.current];
        let columns = step.prepared.description.columns.len();
        let announced = step.announce(sink);
        let Some(row) = RawRow::of_message(columns, self.channel.inbound.body()) else {
            return Err(self.protocol_error("a row of another description"));
        };
        if run.sink_result(announced.and_then(|()| sink.row(row)))? == Some(Flow::Wait) {
            // While the sink is not ready, nothing is read from PostgreSQL, so PostgreSQL waits
            // too. The wait does not count against the deadline.
            let began = Instant::now();
            let result = sink.ready().await;
            run.sink_result(result)?;
            let waited = began.elapsed();
            run.deadline = run.deadline.map(|deadline| deadline + waited);
        }
        Ok(())
    }

    /// Handles the end of a statement. After the last statement, queues the commit if it has waited
    /// for the sinks.
    fn end_step(&mut self, run: &mut PipelineRun<'_>, sink: &mut dyn RowSink) -> Result<(), Error> {
        let discards_rows = run.refused.is_some();
        let step = &mut run.steps[run.current];
        if !discards_rows {
            let affected_rows = step.affected;
            let result = step.announce(sink);
            let result = result.and_then(|()| sink.end(Completion { affected_rows }));
            run.sink_result(result)?;
        }
        run.current += 1;
        if run.current == run.steps.len() {
            self.end_steps(run)?;
        }
        Ok(())
    }
}
