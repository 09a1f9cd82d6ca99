//! The send queue of a multiplexed connection. Requests add pipelines, which the driver of the
//! connection sends next.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tidegate_values::Type;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::backlog::Backlog;
use super::buffered_rows::BufferedRows;
use super::pending::{PendingPipeline, PendingStatement, PipelineFault, SpeculativePrepare};
use crate::connection::push_prepared_switch;
use crate::metadata::StatementKey;
use crate::session::{ParameterSet, push_parse};
use crate::statement::{PreparedStatement, StatementCache, StatementTask};

/// The maximum length of a pipeline in bytes, values included. It is limited because other
/// pipelines wait until it is sent.
const MAX_BYTES: usize = 64 << 10;

/// The result of queueing a pipeline.
pub(crate) enum Enqueued {
    /// The pipeline is queued, and the receiver gets its rows. The sender is dropped if the
    /// pipeline fails.
    Queued(oneshot::Receiver<BufferedRows>),
    /// No connection is open, or the queues of all open connections are full.
    Full,
    /// The statements must not be multiplexed now.
    NotMultiplexed,
}

/// The pipelines that requests have queued, and that the driver has not taken yet.
pub(super) struct SendQueue {
    /// The prepared statements of the connection, moved here while it is multiplexed.
    statements: StatementCache,
    /// The process id of the connection's backend.
    backend: i32,
    /// The encoded messages of `pipelines`.
    staged: BytesMut,
    pipelines: Vec<PendingPipeline>,
    /// The statements whose Parse was sent in a pipeline that has no response yet.
    speculative: Vec<SpeculativePrepare>,
    backlog: Backlog,
    waker: Option<Waker>,
}

impl SendQueue {
    pub(super) fn new(statements: StatementCache, backend: i32) -> Self {
        Self {
            statements,
            backend,
            staged: BytesMut::with_capacity(1024),
            pipelines: Vec::new(),
            speculative: Vec::new(),
            backlog: Backlog::default(),
            waker: None,
        }
    }

    /// The time that the pipelines on the connection are expected to take; `None` if their number
    /// has reached its limit.
    pub(super) fn backlog(&self) -> Option<Duration> {
        self.backlog.expected()
    }

    /// Queues a pipeline of reads if all reads are quick and pure, and their descriptions are
    /// cached. If the connection already has pipelines, the backlog must be shorter than `limit`.
    pub(super) fn enqueue(&mut self, tasks: &[StatementTask<'_>], limit: Duration) -> Enqueued {
        if !self.backlog.has_room(limit) {
            return Enqueued::Full;
        }
        let now = Instant::now();
        let Some(reads) = self.find(tasks, now) else {
            return Enqueued::NotMultiplexed;
        };
        let latencies = reads
            .iter()
            .map(|read| read.prepared.description.latency.expected());
        let expected: Duration = latencies.sum();
        if !self.backlog.responds_in_time(expected, limit) {
            return Enqueued::Full;
        }
        let (statements, staged) = (&mut self.statements, &mut self.staged);
        let pushed = push_reads(statements, staged, &reads, self.backend, MAX_BYTES);
        if pushed.is_none() {
            return Enqueued::NotMultiplexed;
        }
        let unknown = reads.iter().filter(|read| read.unconfirmed);
        let speculative =
            unknown.map(|read| SpeculativePrepare::new(read.task.bound, &read.prepared));
        self.speculative.extend(speculative);
        self.backlog.push(expected);
        let steps = reads.into_iter().map(|read| PendingStatement {
            statement: read.task.bound.statement.clone(),
            prepared: read.prepared,
        });
        let switches = tasks.first().is_some_and(|task| task.switch.is_some());
        let (reply, response) = oneshot::channel();
        let pipeline = PendingPipeline::new(steps.collect(), switches, now, expected, reply);
        self.pipelines.push(pipeline);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Enqueued::Queued(response)
    }

    /// The prepared statements of the pipeline; `None` if one of them must not be multiplexed.
    fn find<'a>(
        &mut self,
        tasks: &'a [StatementTask<'a>],
        now: Instant,
    ) -> Option<Vec<PipelinedRead<'a>>> {
        let mut reads: Vec<PipelinedRead<'a>> = Vec::with_capacity(tasks.len());
        for task in tasks {
            let (prepared, unconfirmed) = self.known(task, &reads)?;
            if !prepared.description.latency.is_quick(now) || task.is_impure(&prepared) {
                return None;
            }
            reads.push(PipelinedRead {
                task,
                prepared,
                unconfirmed,
            });
        }
        Some(reads)
    }

    /// The prepared statement of a task, and whether the pipeline has to prepare it. Returns `None`
    /// if the statement must not be multiplexed now. `before` contains the earlier reads of the
    /// pipeline.
    fn known(
        &mut self,
        task: &StatementTask<'_>,
        before: &[PipelinedRead<'_>],
    ) -> Option<(Arc<PreparedStatement>, bool)> {
        let is_its_parse = |read: &&PipelinedRead<'_>| {
            read.unconfirmed && StatementKey::of(read.task.bound).matches(task.bound)
        };
        // An earlier read of this pipeline prepares the same statement.
        if let Some(read) = before.iter().find(is_its_parse) {
            return Some((read.prepared.clone(), false));
        }
        let (prepared, unconfirmed) = self.statements.known(task, true)?;
        // Another pipeline, whose response is outstanding, already prepares the statement. This
        // pipeline must not prepare it again.
        let is_pending = |speculative: &SpeculativePrepare| {
            speculative.prepared.role == prepared.role && speculative.key.matches(task.bound)
        };
        if unconfirmed && self.speculative.iter().any(is_pending) {
            return self.statements.known(task, false);
        }
        Some((prepared, unconfirmed))
    }

    /// Whether pipelines are queued. If none is queued, `waker` is woken when a pipeline is queued.
    pub(super) fn watch(&mut self, waker: &Waker) -> bool {
        let waits = !self.pipelines.is_empty();
        if !waits {
            self.waker = Some(waker.clone());
        }
        waits
    }

    /// Moves the queued messages into `out` and returns their pipelines.
    pub(super) fn drain(&mut self, out: &mut BytesMut) -> Vec<PendingPipeline> {
        if out.is_empty() {
            std::mem::swap(out, &mut self.staged);
        } else {
            out.extend_from_slice(&self.staged);
        }
        self.staged.clear();
        std::mem::take(&mut self.pipelines)
    }

    /// Whether no pipeline is queued.
    pub(super) fn is_empty(&self) -> bool {
        self.pipelines.is_empty()
    }

    /// Removes a pipeline that has completed or failed. The statements that the pipeline prepared
    /// are kept if it has completed, and discarded if it has failed. If it failed because a
    /// statement was stale, its other statements are also removed from the cache.
    pub(super) fn end(&mut self, pipeline: &PendingPipeline) {
        self.backlog.pop(pipeline.expected);
        for step in &pipeline.steps {
            let is_same = |speculative: &mut SpeculativePrepare| {
                Arc::ptr_eq(&speculative.prepared, &step.prepared)
            };
            if let Some(speculative) = self.speculative.extract_if(.., is_same).next() {
                if pipeline.is_complete() {
                    self.statements.keep(speculative.key, speculative.prepared);
                } else {
                    self.statements.discard(&speculative.prepared.name);
                }
            } else if pipeline.fault() == Some(PipelineFault::Stale) {
                self.statements.forget_prepared(&step.prepared);
            }
        }
    }

    /// Returns the prepared statements of the connection; `None` if the session may hold more
    /// prepared statements than these.
    pub(super) fn into_statements(self) -> Option<StatementCache> {
        (self.staged.is_empty() && self.speculative.is_empty()).then_some(self.statements)
    }
}

/// A read with one parameter set, for a pipeline of a multiplexed connection.
struct PipelinedRead<'a> {
    task: &'a StatementTask<'a>,
    prepared: Arc<PreparedStatement>,
    /// Whether the description comes from another connection. The pipeline then also prepares the
    /// statement.
    unconfirmed: bool,
}

impl PipelinedRead<'_> {
    /// Queues the parameter set. Returns `None` if a value does not fit its type. The request then
    /// runs on a connection of its own and gets the error there.
    fn push(&self, out: &mut BytesMut) -> Option<()> {
        let set = ParameterSet {
            task: self.task,
            prepared: &self.prepared,
            index: 0,
            describe: self.unconfirmed,
        };
        set.push(out).ok()
    }

    fn push_parse(&self, statements: &mut StatementCache, out: &mut BytesMut) -> Option<()> {
        let types = self.prepared.description.parameters.iter();
        let types = types.map(Type::oid);
        push_parse(statements, out, self.task, &self.prepared.name, types).ok()
    }
}

/// Appends a pipeline of reads to a buffer: the switch to the caller, the reads, a Sync. Returns
/// `None` and appends nothing if the switch is not prepared, if a value does not fit its type, or
/// if the pipeline would be longer than `longest` bytes. `backend` is the process id of the
/// connection's backend.
fn push_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[PipelinedRead<'_>],
    backend: i32,
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if push_switch_and_reads(statements, out, reads, backend, longest).is_none() {
        out.truncate(start);
        return None;
    }
    frontend::sync(out);
    Some(())
}

fn push_switch_and_reads(
    statements: &mut StatementCache,
    out: &mut BytesMut,
    reads: &[PipelinedRead<'_>],
    backend: i32,
    longest: usize,
) -> Option<()> {
    let start = out.len();
    if let Some(switch) = reads.first()?.task.switch {
        push_prepared_switch(statements, &switch, backend, out)?;
    }
    let after_switch = out.len();
    reads.iter().try_for_each(|read| read.push(out))?;
    let unconfirmed = reads.iter().filter(|read| read.unconfirmed);
    let texts = unconfirmed
        .clone()
        .map(|read| read.task.bound.statement.text().len());
    if out.len() - start + texts.sum::<usize>() > longest {
        return None;
    }
    let mut unconfirmed = unconfirmed.peekable();
    if unconfirmed.peek().is_some() {
        // The parameter sets were encoded first, because encoding can fail. They are now moved
        // after the Parse. A Parse cannot be withdrawn: `push_parse` also queues the Close of
        // dropped statements, and the statement cache no longer has their names.
        let sets = out.split_off(after_switch);
        unconfirmed.try_for_each(|read| read.push_parse(statements, out))?;
        out.unsplit(sets);
    }
    Some(())
}
