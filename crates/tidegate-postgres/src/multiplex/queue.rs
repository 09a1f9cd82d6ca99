//! The side of a multiplexed connection that requests use: what is to be sent next.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::BytesMut;
use tidegate_sql::BoundStatement;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use super::job::{Fault, Guess, Job, Step};
use crate::session::cache::{Prepared, StatementCache, is_same};
use crate::session::pipeline::{Read, push_reads};
use crate::session::task::Task;

/// How long the pipelines on a connection may be expected to take together.
const BACKLOG: Duration = Duration::from_millis(1);
/// Pipelines on a connection at most.
const DEEPEST: usize = 64;
/// The longest pipeline, its values included: others wait behind it.
const LONGEST: usize = 64 << 10;

/// What came of asking.
pub(crate) enum Asked {
    /// The answer comes, or fails to.
    Queued(oneshot::Receiver<Answer>),
    /// There is no room, or no connection.
    Full,
    /// These statements are not multiplexed now.
    Unfit,
}

/// What requests have asked since the driver last looked.
pub(super) struct Queue {
    /// Those of the connection, which has none while it is multiplexed.
    statements: StatementCache,
    /// The messages of `jobs`.
    staged: BytesMut,
    jobs: Vec<Job>,
    /// Statements that unanswered pipelines prepare.
    guesses: Vec<Guess>,
    /// How many pipelines there are, sent or not, and how long they are expected to take.
    depth: usize,
    backlog: Duration,
    waker: Option<Waker>,
}

impl Queue {
    pub(super) fn new(statements: StatementCache) -> Self {
        Self {
            statements,
            staged: BytesMut::with_capacity(1024),
            jobs: Vec::new(),
            guesses: Vec::new(),
            depth: 0,
            backlog: Duration::ZERO,
            waker: None,
        }
    }

    fn has_room(&self) -> bool {
        self.depth == 0 || (self.depth < DEEPEST && self.backlog < BACKLOG)
    }

    /// Queues a pipeline of reads, if all of them are known, quick and harmless.
    pub(super) fn take(&mut self, tasks: &[Task<'_>]) -> Asked {
        if !self.has_room() {
            return Asked::Full;
        }
        let now = Instant::now();
        let Some(reads) = self.find(tasks, now) else {
            return Asked::Unfit;
        };
        let pushed = push_reads(&mut self.statements, &mut self.staged, &reads, LONGEST);
        if pushed.is_none() {
            return Asked::Unfit;
        }
        let unknown = reads.iter().filter(|read| read.guessed);
        let guesses = unknown.map(|read| Guess::new(read.task.bound, &read.prepared));
        self.guesses.extend(guesses);
        let paces = reads.iter().map(|read| read.prepared.shape.pace.expected());
        let expected = paces.sum();
        self.depth += 1;
        self.backlog += expected;
        let steps = reads.into_iter().map(|read| Step {
            statement: read.task.bound.statement.clone(),
            prepared: read.prepared,
        });
        let switches = tasks.first().is_some_and(|task| task.switch.is_some());
        let (reply, answer) = oneshot::channel();
        let job = Job::new(steps.collect(), switches, (now, expected), reply);
        self.jobs.push(job);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Asked::Queued(answer)
    }

    /// What is known of the statements; `None` when one of them must not be multiplexed.
    fn find<'a>(&mut self, tasks: &'a [Task<'a>], now: Instant) -> Option<Vec<Read<'a>>> {
        let mut reads: Vec<Read<'a>> = Vec::with_capacity(tasks.len());
        for task in tasks {
            let (prepared, guessed) = self.known(task, &reads)?;
            if !prepared.shape.pace.is_quick(now) || task.is_suspect(&prepared) {
                return None;
            }
            reads.push(Read {
                task,
                prepared,
                guessed,
            });
        }
        Some(reads)
    }

    /// What is known of a statement, and whether the pipeline has to prepare it.
    fn known(&mut self, task: &Task<'_>, before: &[Read<'_>]) -> Option<(Arc<Prepared>, bool)> {
        let is_its_parse = |read: &&Read<'_>| read.guessed && is_of(read.task.bound, task.bound);
        // Prepared by the same pipeline, and described before this one runs.
        if let Some(read) = before.iter().find(is_its_parse) {
            return Some((read.prepared.clone(), false));
        }
        let (prepared, guessed) = self.statements.known(task, true)?;
        // What another pipeline prepares is confirmed with that one's answer.
        let unconfirmed =
            |guess: &Guess| guess.prepared.role == prepared.role && is_of(&guess.bound, task.bound);
        if guessed && self.guesses.iter().any(unconfirmed) {
            return self.statements.known(task, false);
        }
        Some((prepared, guessed))
    }

    /// Whether there is something to be sent; if not, the driver is woken when there is.
    pub(super) fn watch(&mut self, waker: &Waker) -> bool {
        let waits = !self.jobs.is_empty();
        if !waits {
            self.waker = Some(waker.clone());
        }
        waits
    }

    /// Moves everything that is to be sent into `out`; returns the pipelines.
    pub(super) fn drain(&mut self, out: &mut BytesMut) -> Vec<Job> {
        if out.is_empty() {
            std::mem::swap(out, &mut self.staged);
        } else {
            out.extend_from_slice(&self.staged);
        }
        self.staged.clear();
        std::mem::take(&mut self.jobs)
    }

    /// Whether nothing is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Counts a pipeline out that was answered, successfully or not.
    pub(super) fn end(&mut self, job: &Job) {
        self.depth = self.depth.saturating_sub(1);
        self.backlog = match self.depth {
            0 => Duration::ZERO,
            _ => self.backlog.saturating_sub(job.expected),
        };
        for step in &job.steps {
            let of_it = |guess: &mut Guess| Arc::ptr_eq(&guess.prepared, &step.prepared);
            if let Some(guess) = self.guesses.extract_if(.., of_it).next() {
                if job.is_good() {
                    self.statements.keep(&guess.bound, guess.prepared);
                } else {
                    self.statements.discard(&guess.prepared.name);
                }
            } else if job.fault() == Some(Fault::Stale) {
                self.statements.forget_prepared(&step.prepared);
            }
        }
    }

    /// Gives the statements back; `None` when PostgreSQL may hold others than these.
    pub(super) fn into_statements(self) -> Option<StatementCache> {
        (self.staged.is_empty() && self.guesses.is_empty()).then_some(self.statements)
    }
}

fn is_of(known: &BoundStatement, bound: &BoundStatement) -> bool {
    is_same(&known.statement, &known.hints, bound)
}
