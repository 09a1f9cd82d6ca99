//! The messages of several statements under one Sync.

use std::time::Duration;

use postgres_protocol::message::frontend;
use tidegate_sql::{
    Commit, Completion, Error, Flow, InputError, Mode, PipelineError, RowSink, TransactionOutcome,
};
use tidegate_values::{RawRow, Type};
use tidegate_wire::channel::Halt;
use tidegate_wire::rejection::ServerError;
use tidegate_wire::{body, tag};
use tokio::time::{Instant, timeout};

use super::batch::Batch;
use super::execute::Run;
use super::pipeline::{AHEAD, Set, Wrong};
use super::prefix::SNAPSHOT;
use crate::connection::Connection;

/// How long a cancelled pipeline may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// What ends a snapshot.
const COMMIT: &str = "COMMIT";

/// How far the messages of a batch have come.
pub(super) struct Steps<'a> {
    pub(super) batch: &'a Batch<'a>,
    pub(super) runs: Vec<Run<'a>>,
    deadline: Option<Instant>,
    /// The step whose sets are queued next.
    queuing: usize,
    /// The step whose answers come next.
    pub(super) current: usize,
    end: End,
    /// How many `ReadyForQuery` are still to come.
    syncs: u8,
    /// Whether anything has left this process.
    sent: bool,
    /// Whether PostgreSQL refused a statement, which rolls back for certain.
    undone: bool,
    /// What PostgreSQL refused, in the current step or at the commit.
    pub(super) failure: Option<ServerError>,
    /// Whether the deadline has passed and what runs was cancelled.
    pub(super) overdue: bool,
    /// A set that could not be sent.
    pub(super) wrong: Option<(usize, InputError)>,
    /// A sink that refused a row when the commit had been sent.
    pub(super) refused: Option<(usize, Error)>,
}

/// The end of the transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Sets are still to be queued.
    Open,
    /// It waits until the sinks have taken all rows.
    Held,
    /// It has been queued.
    Queued,
}

impl<'a> Steps<'a> {
    pub(super) fn new(batch: &'a Batch<'a>, runs: Vec<Run<'a>>) -> Self {
        Self {
            batch,
            runs,
            deadline: batch.deadline(),
            queuing: 0,
            current: 0,
            end: End::Open,
            syncs: 0,
            sent: false,
            undone: false,
            failure: None,
            overdue: false,
            wrong: None,
            refused: None,
        }
    }

    /// Notes how long the statements took, each of them as long as the others.
    pub(super) fn learn_pace(&self) {
        let count = u32::try_from(self.runs.len()).unwrap_or(u32::MAX);
        for run in &self.runs {
            run.prepared.shape.pace.took(run.began.elapsed() / count);
        }
    }

    /// Whether the commit waits for the sinks: a row that one refuses undoes what was written.
    fn waits(&self) -> bool {
        let has_rows = |run: &Run<'_>| !run.prepared.shape.columns.is_empty();
        self.batch.commit == Commit::AfterRows
            && self.batch.has_effects()
            && self.runs.iter().any(has_rows)
    }

    /// The error of a stream, a deadline or a sink in the middle of the pipeline.
    pub(super) fn lost(&self, error: Error) -> PipelineError {
        if self.is_in_doubt() {
            return PipelineError {
                step: None,
                error,
                outcome: TransactionOutcome::Unknown,
            };
        }
        self.rolled_back(error)
    }

    /// Whether PostgreSQL has been told to commit, and has not said what came of it.
    fn is_in_doubt(&self) -> bool {
        self.end == End::Queued && self.batch.has_effects() && !self.undone
    }

    pub(super) fn rolled_back(&self, error: Error) -> PipelineError {
        PipelineError {
            step: (self.current < self.runs.len()).then_some(self.current),
            ..error.into()
        }
    }

    /// What a sink says. It cannot be obeyed once the commit has been sent: then the outcome is
    /// awaited, and what else comes is thrown away.
    fn heed<T>(&mut self, said: Result<T, Error>) -> Result<Option<T>, Error> {
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
    /// Queues what stands in front of the statements.
    pub(super) fn begin_steps(&mut self, steps: &mut Steps<'_>) -> Result<(), Error> {
        self.begin_pipeline();
        if steps.batch.mode == Mode::Snapshot {
            self.prepare_own(&[SNAPSHOT, COMMIT])?;
        }
        let begin = (steps.batch.mode == Mode::Snapshot).then_some(Mode::Snapshot);
        let switch = steps.batch.tasks.first().and_then(|task| task.switch);
        self.push_prefix(begin, switch)
    }

    /// Sends the statements and takes their answers, up to the last `ReadyForQuery`.
    pub(super) async fn exchange_steps(
        &mut self,
        steps: &mut Steps<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        loop {
            self.fill_steps(steps)?;
            if steps.end == End::Queued && steps.syncs == 0 {
                return Ok(());
            }
            let tag = match self.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    steps.sent = true;
                    if let Err(halt) = self.channel.exchange(steps.deadline).await {
                        if matches!(halt, Halt::Deadline) && self.cancel_steps(steps).await {
                            continue;
                        }
                        let ended = self.halted(halt);
                        let step = steps.current.min(steps.runs.len() - 1);
                        let task = steps.runs[step].task;
                        return Err(self.last_word(steps.failure.take(), ended, task));
                    }
                    continue;
                }
                Err(error) => return Err(self.halted(error.into())),
            };
            if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                steps.syncs = steps.syncs.saturating_sub(1);
                if steps.syncs == 0 {
                    return Ok(());
                }
            } else if !self.is_aside(tag)? {
                self.take_step(tag, steps, sinks).await?;
            } else if self.session.prefix.is_refused() {
                // PostgreSQL skips everything up to the Sync.
                self.end_steps(steps)?;
            }
        }
    }

    /// Cancels what runs behind a passed deadline, once. PostgreSQL then has a moment to say which
    /// statement it was, for answers wait in its buffer, and what became of the transaction.
    async fn cancel_steps(&mut self, steps: &mut Steps<'_>) -> bool {
        if steps.overdue {
            return false;
        }
        steps.overdue = true;
        let cancelled = timeout(GRACE, self.cancel_running()).await;
        steps.deadline = Some(Instant::now() + GRACE);
        cancelled.is_ok()
    }

    /// Queues sets up to the limit, and the end of the transaction behind the last.
    fn fill_steps(&mut self, steps: &mut Steps<'_>) -> Result<(), Error> {
        while steps.end == End::Open && self.channel.outbound.len() < AHEAD {
            let index = steps.queuing;
            let Some(run) = steps.runs.get_mut(index) else {
                if steps.waits() {
                    steps.end = End::Held;
                    frontend::flush(&mut self.channel.outbound);
                } else {
                    self.end_steps(steps)?;
                }
                break;
            };
            match self.push_next_set(run) {
                Ok(()) if run.progress.next == run.task.bound.sets.len() => steps.queuing += 1,
                Ok(()) => {}
                Err(Wrong::Ours(error)) => return Err(error),
                Err(Wrong::Input(wrong)) => {
                    steps.wrong = Some((index, wrong));
                    steps.end = End::Queued;
                    if steps.sent || steps.runs.iter().any(|run| run.guessed) {
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

    fn push_next_set(&mut self, run: &mut Run<'_>) -> Result<(), Wrong> {
        let index = run.progress.next;
        let describe = run.guessed && index == 0;
        if describe {
            let types = run.prepared.shape.parameters.iter().map(Type::oid);
            let parsed = self.push_parse(run.task, &run.prepared.name, types);
            parsed.map_err(Wrong::Ours)?;
        }
        let set = Set {
            task: run.task,
            prepared: &run.prepared,
            index,
            describe,
        };
        set.push(&mut self.channel.outbound)?;
        run.progress.next += 1;
        Ok(())
    }

    /// Queues the end of the transaction, and the reset behind it.
    fn end_steps(&mut self, steps: &mut Steps<'_>) -> Result<(), Error> {
        if steps.end == End::Queued {
            return Ok(());
        }
        steps.end = End::Queued;
        let resets = self.session.residue().is_reset_due();
        if steps.batch.mode == Mode::Snapshot {
            if resets {
                // After an error PostgreSQL skips everything up to here, and COMMIT rolls back;
                // otherwise the reset would find a failed transaction.
                self.sync();
                steps.syncs += 1;
                self.begin_pipeline();
            }
            self.push_own(COMMIT)?;
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
        steps: &mut Steps<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<(), Error> {
        if tag == tag::ERROR_RESPONSE {
            return self.refuse_step(steps);
        }
        // What follows is of other statements, or of COMMIT: behind a refused switch too.
        if steps.failure.is_some() || self.session.prefix.is_refused() {
            return Ok(());
        }
        let is_over = steps.refused.is_some();
        // Behind the last step comes COMMIT, which has no sink.
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
                // A guess is confirmed by the description of the portal instead.
                if !run.guessed && !is_over {
                    let said = run.announce(&mut **sink);
                    steps.heed(said)?;
                }
            }
            tag::NO_DATA | tag::ROW_DESCRIPTION => {
                let fields = match tag {
                    tag::NO_DATA => Some(Vec::new()),
                    _ => body::row_description(self.channel.inbound.body()),
                };
                let Some(fields) = fields else {
                    return Err(self.breach("an unreadable description"));
                };
                if !is_over {
                    let said = run.confirm(&fields, &mut **sink);
                    steps.failure = run.failure.take();
                    steps.heed(said)?;
                }
            }
            tag::COMMAND_COMPLETE => {
                run.ended += 1;
                run.count(body::command_tag(self.channel.inbound.body()));
                if run.ended == run.task.bound.sets.len() {
                    return self.end_step(steps, &mut **sink);
                }
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => {
                let name = char::from(tag).escape_default().to_string();
                return Err(self.breach(&format!("an unexpected message `{name}`")));
            }
        }
        Ok(())
    }

    fn refuse_step(&mut self, steps: &mut Steps<'_>) -> Result<(), Error> {
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
        steps: &mut Steps<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let columns = steps.runs[steps.current].prepared.shape.columns.len();
        let values = self.channel.inbound.body().get(2..);
        let Some(row) = values.and_then(|values| RawRow::new(columns, values)) else {
            return Err(self.breach("a row of another shape"));
        };
        let said = sink.row(row);
        if steps.heed(said)? == Some(Flow::Wait) {
            // Nothing is read meanwhile, so PostgreSQL waits too. The time is the reader's.
            let began = Instant::now();
            let said = sink.ready().await;
            steps.heed(said)?;
            let waited = began.elapsed();
            steps.deadline = steps.deadline.map(|deadline| deadline + waited);
        }
        Ok(())
    }

    /// A statement has ended; behind the last one of a transaction that waited comes its commit.
    fn end_step(&mut self, steps: &mut Steps<'_>, sink: &mut dyn RowSink) -> Result<(), Error> {
        let is_over = steps.refused.is_some();
        let run = &mut steps.runs[steps.current];
        if !is_over {
            let affected_rows = run.affected;
            let said = run.announce(sink);
            let said = said.and_then(|()| sink.end(Completion { affected_rows }));
            steps.heed(said)?;
        }
        steps.current += 1;
        if steps.current == steps.runs.len() {
            self.end_steps(steps)?;
        }
        Ok(())
    }
}
