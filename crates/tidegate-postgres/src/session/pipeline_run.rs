//! Exchanges the messages of a pipeline. Each of its statements is a *step*.

use std::time::Duration;

use postgres_protocol::message::frontend;
use tidegate_sql::{
    Commit, Completion, Error, Flow, InputError, Mode, PipelineError, RowSink, TransactionOutcome,
};
use tidegate_values::RawRow;
use tidegate_wire::channel::ReadError;
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;
use tokio::time::{Instant, timeout};

use super::execution::Execution;
use super::parameter_sets::{SEND_AHEAD, SetError};
use super::pipeline_request::PipelineRequest;
use crate::connection::{Connection, SNAPSHOT};

/// How long a cancelled pipeline may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// Ends a snapshot transaction.
const COMMIT: &str = "COMMIT";

/// The progress of a pipeline.
pub(super) struct PipelineRun<'a> {
    pub(super) batch: &'a PipelineRequest<'a>,
    pub(super) runs: Vec<Execution<'a>>,
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
    pub(super) wrong: Option<(usize, InputError)>,
    /// The sink that refused a row after the commit was sent: the index of its step, and the error.
    pub(super) refused: Option<(usize, Error)>,
}

/// Whether the end of the transaction has been queued.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionEnd {
    /// The end is not queued, because parameter sets are still to be queued.
    Open,
    /// The end is not queued, because the commit waits until the sinks have taken all rows.
    Held,
    /// The commit is queued.
    Queued,
}

impl<'a> PipelineRun<'a> {
    pub(super) fn new(batch: &'a PipelineRequest<'a>, runs: Vec<Execution<'a>>) -> Self {
        Self {
            batch,
            runs,
            deadline: batch.deadline(),
            queuing: 0,
            current: 0,
            end: TransactionEnd::Open,
            syncs: 0,
            sent: false,
            undone: false,
            failure: None,
            overdue: false,
            wrong: None,
            refused: None,
        }
    }

    /// Records the latency of the statements. Each is assumed to take an equal part of the time.
    pub(super) fn record_latency(&self) {
        let count = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        for run in &self.runs {
            let latency = &run.prepared.description.latency;
            latency.record_direct(run.began.elapsed() / count);
        }
    }

    /// Whether the commit waits until the sinks have taken all rows: if a sink refuses one, the
    /// writes are undone.
    fn waits(&self) -> bool {
        let has_rows = |run: &Execution<'_>| !run.prepared.description.columns.is_empty();
        self.batch.commit == Commit::AfterRows
            && self.batch.has_effects()
            && self.runs.iter().any(has_rows)
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
        self.end == TransactionEnd::Queued && self.batch.has_effects() && !self.undone
    }

    pub(super) fn rolled_back(&self, error: Error) -> PipelineError {
        PipelineError {
            step: (self.current < self.runs.len()).then_some(self.current),
            ..error.into()
        }
    }

    /// Handles the result of a sink. An error of a sink cannot stop a commit that was sent. In that
    /// case the error is stored, the outcome is awaited, and further rows are discarded.
    fn sink_result<T>(&mut self, said: Result<T, Error>) -> Result<Option<T>, Error> {
        match said {
            Ok(said) => Ok(Some(said)),
            Err(error) if self.batch.has_effects() && !self.waits() => {
                let step = self.current;
                self.refused.get_or_insert((step, error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Connection {
    /// Queues the prefix of the pipeline.
    pub(super) fn begin_steps(&mut self, steps: &mut PipelineRun<'_>) -> Result<(), Error> {
        self.begin_pipeline();
        if steps.batch.mode == Mode::Snapshot {
            self.prepare_internal(&[SNAPSHOT, COMMIT])?;
        }
        let begin = (steps.batch.mode == Mode::Snapshot).then_some(Mode::Snapshot);
        let switch = steps.batch.tasks.first().and_then(|task| task.switch);
        self.push_prefix(begin, switch)
    }

    /// Sends the statements and processes the responses up to the last `ReadyForQuery`.
    pub(super) async fn exchange_steps(
        &mut self,
        steps: &mut PipelineRun<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        loop {
            self.fill_steps(steps)?;
            if steps.end == TransactionEnd::Queued && steps.syncs == 0 {
                return Ok(());
            }
            let tag = match self.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    // An invalid set after this point must be undone, because a part of the
                    // pipeline was sent.
                    steps.sent = true;
                    if let Err(halt) = self.channel.exchange(steps.deadline).await {
                        if matches!(halt, ReadError::Deadline) && self.cancel_steps(steps).await {
                            continue;
                        }
                        let ended = self.read_error(halt);
                        let step = steps.current.min(steps.runs.len() - 1);
                        let task = steps.runs[step].task;
                        return Err(self.stream_error(steps.failure.take(), ended, task));
                    }
                    continue;
                }
                Err(error) => return Err(self.read_error(error.into())),
            };
            if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                steps.syncs = steps.syncs.saturating_sub(1);
                if steps.syncs == 0 {
                    return Ok(());
                }
            } else if !self.is_asynchronous(tag)? {
                self.take_step(tag, steps, sinks).await?;
            } else if self.session.prefix.is_refused() {
                // After the error, PostgreSQL skips everything up to the Sync.
                self.end_steps(steps)?;
            }
        }
    }

    /// Cancels the running statement once, after the deadline. PostgreSQL then has [`GRACE`] to
    /// report which statement it was and what became of the transaction.
    async fn cancel_steps(&mut self, steps: &mut PipelineRun<'_>) -> bool {
        if steps.overdue {
            return false;
        }
        steps.overdue = true;
        let cancelled = timeout(GRACE, self.cancel_running()).await;
        steps.deadline = Some(Instant::now() + GRACE);
        cancelled.is_ok()
    }

    /// Queues parameter sets up to [`SEND_AHEAD`] bytes; after the last set, ends the transaction.
    fn fill_steps(&mut self, steps: &mut PipelineRun<'_>) -> Result<(), Error> {
        while steps.end == TransactionEnd::Open && self.channel.outbound.len() < SEND_AHEAD {
            let index = steps.queuing;
            let Some(run) = steps.runs.get_mut(index) else {
                if steps.waits() {
                    steps.end = TransactionEnd::Held;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.end_steps(steps)?;
                }
                break;
            };
            match self.push_next_set(run) {
                Ok(()) if run.progress.next == run.task.bound.sets.len() => steps.queuing += 1,
                Ok(()) => {}
                Err(SetError::Internal(error)) => return Err(error),
                Err(SetError::Input(wrong)) => {
                    steps.wrong = Some((index, wrong));
                    steps.end = TransactionEnd::Queued;
                    if steps.sent || steps.runs.iter().any(|run| run.unconfirmed) {
                        self.abort();
                        steps.syncs = 1;
                    } else {
                        self.withdraw();
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues the end of the transaction, and the reset after it.
    fn end_steps(&mut self, steps: &mut PipelineRun<'_>) -> Result<(), Error> {
        if steps.end == TransactionEnd::Queued {
            return Ok(());
        }
        steps.end = TransactionEnd::Queued;
        let resets = self.session.side_effects().is_reset_due();
        if steps.batch.mode == Mode::Snapshot {
            if resets {
                // After an error PostgreSQL skips everything up to this Sync, and COMMIT then rolls
                // back. Without this Sync PostgreSQL would skip the COMMIT, and the reset would
                // find a failed transaction.
                self.sync();
                steps.syncs += 1;
                self.begin_pipeline();
            }
            self.push_internal(COMMIT)?;
        }
        self.sync();
        steps.syncs += 1;
        if resets {
            self.push_reset();
        }
        Ok(())
    }

    async fn take_step(
        &mut self,
        tag: u8,
        steps: &mut PipelineRun<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        if tag == tag::ERROR_RESPONSE {
            return self.refuse_step(steps);
        }
        // The remaining messages belong to statements that do not run, or to the COMMIT.
        if steps.failure.is_some() || self.session.prefix.is_refused() {
            return Ok(());
        }
        let is_over = steps.refused.is_some();
        // The response after the last step belongs to the COMMIT, which has no sink.
        let (Some(run), Some(sink)) = (
            steps.runs.get_mut(steps.current),
            sinks.get_mut(steps.current),
        ) else {
            return Ok(());
        };
        match tag {
            tag::DATA_ROW if is_over => {}
            tag::DATA_ROW => self.push_step_row(steps, &mut **sink).await?,
            tag::BIND_COMPLETE => {
                run.bound += 1;
                if run.announces_at_bind() && !is_over {
                    let said = run.announce(&mut **sink);
                    steps.sink_result(said)?;
                }
            }
            tag::NO_DATA | tag::ROW_DESCRIPTION => {
                let fields = self.fields(tag)?;
                if !is_over {
                    let said = run.confirm(&fields, &mut **sink);
                    steps.failure = run.failure.take();
                    steps.sink_result(said)?;
                }
            }
            tag::COMMAND_COMPLETE => {
                if run.complete_set(self.channel.inbound.body()) {
                    return self.end_step(steps, &mut **sink);
                }
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => return Err(self.unexpected(tag)),
        }
        Ok(())
    }

    fn refuse_step(&mut self, steps: &mut PipelineRun<'_>) -> Result<(), Error> {
        let mut error = ServerError::read(self.channel.inbound.body());
        if let Some(run) = steps.runs.get(steps.current) {
            error.rejection.place = run.unread(&error);
            steps.undone = true;
        }
        steps.failure.get_or_insert(error);
        self.end_steps(steps)
    }

    async fn push_step_row(
        &mut self,
        steps: &mut PipelineRun<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let run = &mut steps.runs[steps.current];
        let columns = run.prepared.description.columns.len();
        let announced = run.announce(sink);
        let Some(row) = RawRow::of_message(columns, self.channel.inbound.body()) else {
            return Err(self.protocol_error("a row of another description"));
        };
        if steps.sink_result(announced.and_then(|()| sink.row(row)))? == Some(Flow::Wait) {
            // While the sink is not ready, nothing is read from PostgreSQL, so PostgreSQL waits
            // too. This time does not count against the deadline.
            let began = Instant::now();
            let said = sink.ready().await;
            steps.sink_result(said)?;
            let waited = began.elapsed();
            steps.deadline = steps.deadline.map(|deadline| deadline + waited);
        }
        Ok(())
    }

    /// Handles the end of a statement. After the last one, queues a commit that waited for sinks.
    fn end_step(
        &mut self,
        steps: &mut PipelineRun<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let is_over = steps.refused.is_some();
        let run = &mut steps.runs[steps.current];
        if !is_over {
            let affected_rows = run.affected;
            let said = run.announce(sink);
            let said = said.and_then(|()| sink.end(Completion { affected_rows }));
            steps.sink_result(said)?;
        }
        steps.current += 1;
        if steps.current == steps.runs.len() {
            self.end_steps(steps)?;
        }
        Ok(())
    }
}
