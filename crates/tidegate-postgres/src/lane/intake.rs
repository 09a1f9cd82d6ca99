//! The side of a lane that requests see: what is to be sent next.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::BytesMut;
use tidegate_sql::BoundStatement;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use super::job::{Guess, Job};
use crate::session::cache::{StatementCache, is_same};
use crate::session::pipeline::push_read;
use crate::session::task::Task;

/// How long the reads on a lane may be expected to take together.
const BACKLOG: Duration = Duration::from_millis(1);
/// Reads on a lane at most.
const DEEPEST: usize = 64;
/// The longest read that a lane sends, its values included: others wait behind it.
const LONGEST: usize = 64 << 10;

/// What came of asking.
pub(crate) enum Asked {
    /// The answer comes, or fails to.
    Shared(oneshot::Receiver<Answer>),
    /// There is no room, or no lane.
    Full,
    /// A lane is not for this read.
    Unfit,
}

/// What requests have asked since the driver last looked.
pub(super) struct Intake {
    /// Those of the connection, which has none while the lane lasts.
    statements: StatementCache,
    /// The messages of `jobs`, in whole up to `whole`.
    staged: BytesMut,
    whole: usize,
    jobs: Vec<Job>,
    /// Statements that are prepared on a guess, by reads that have not been answered.
    guesses: Vec<Guess>,
    /// How many reads there are, sent or not, and how long they are expected to take.
    depth: usize,
    backlog: Duration,
    /// Whether the driver knows that there are reads to be sent.
    gathering: bool,
    waker: Option<Waker>,
}

impl Intake {
    pub(super) fn new(statements: StatementCache) -> Self {
        Self {
            statements,
            staged: BytesMut::with_capacity(1024),
            whole: 0,
            jobs: Vec::new(),
            guesses: Vec::new(),
            depth: 0,
            backlog: Duration::ZERO,
            gathering: false,
            waker: None,
        }
    }

    fn has_room(&self) -> bool {
        self.depth == 0 || (self.depth < DEEPEST && self.backlog < BACKLOG)
    }

    /// Takes a read, if it is known and harmless.
    pub(super) fn take(&mut self, task: &Task<'_>) -> Asked {
        if !self.has_room() {
            return Asked::Full;
        }
        let now = Instant::now();
        let known = self.statements.known(task);
        let Some((prepared, guessed)) = known else {
            return Asked::Unfit;
        };
        let pace = prepared.shape.pace.clone();
        // What is prepared on a guess is another's to confirm.
        let unsure = guessed && self.guesses.iter().any(|guess| guess.is_of(task.bound));
        if unsure || !pace.is_quick(now) || task.is_suspect(&prepared) {
            return Asked::Unfit;
        }
        self.staged.truncate(self.whole);
        let pushed = push_read(
            &mut self.statements,
            &mut self.staged,
            task,
            (&prepared, guessed),
        );
        if pushed.is_none() || self.staged.len() - self.whole > LONGEST {
            self.staged.truncate(self.whole);
            return Asked::Unfit;
        }
        self.whole = self.staged.len();
        let guess = guessed.then(|| Guess::new(task.bound, &prepared));
        self.guesses.extend(guess.clone());
        self.depth += 1;
        let expected = pace.expected();
        self.backlog += expected;
        let (reply, answer) = oneshot::channel();
        let statement = task.bound.statement.clone();
        self.jobs.push(Job::new(
            statement,
            prepared,
            task.switch.is_some(),
            (now, expected),
            reply,
        ));
        self.gathering = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Asked::Shared(answer)
    }

    /// Whether there is something to be sent; if not, the driver is woken when there is.
    pub(super) fn watch(&mut self, waker: &Waker) -> bool {
        if !self.gathering {
            self.waker = Some(waker.clone());
        }
        self.gathering
    }

    /// Moves everything that is to be sent into an empty buffer; gives the reads.
    pub(super) fn drain(&mut self, out: &mut BytesMut) -> Vec<Job> {
        self.gathering = false;
        self.staged.truncate(self.whole);
        self.whole = 0;
        if out.is_empty() {
            std::mem::swap(out, &mut self.staged);
        } else {
            out.extend_from_slice(&self.staged);
        }
        self.staged.clear();
        std::mem::take(&mut self.jobs)
    }

    /// Counts a read out that was answered, well or not.
    pub(super) fn end(&mut self, job: &Job) {
        self.depth = self.depth.saturating_sub(1);
        self.backlog = match self.depth {
            0 => Duration::ZERO,
            _ => self.backlog.saturating_sub(job.expected),
        };
        let of_it = |guess: &mut Guess| Arc::ptr_eq(&guess.prepared, &job.prepared);
        if let Some(guess) = self.guesses.extract_if(.., of_it).next() {
            if job.is_good() {
                self.statements.keep(&guess.bound, guess.prepared);
            } else {
                self.statements.discard(&guess.prepared.name);
            }
        } else if job.is_stale() {
            self.statements.forget_prepared(&job.prepared);
        }
    }

    /// Gives the statements back; `None` when some were to be closed by what was not sent.
    pub(super) fn into_statements(self) -> Option<StatementCache> {
        (self.whole == 0 && self.guesses.is_empty()).then_some(self.statements)
    }
}

impl Guess {
    fn is_of(&self, bound: &BoundStatement) -> bool {
        is_same(&self.bound.statement, &self.bound.hints, bound)
    }
}
