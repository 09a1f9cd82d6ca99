//! A connection with the reads that share it. Nothing here waits; the driver polls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use super::job::Job;
use crate::connection::{Connection, TransactionStatus};
use crate::dictionary::Dictionary;
use crate::executor::{RoleConnector, told};
use crate::pool::Lease;
use crate::session::reset::Residue;
use crate::session::task::Task;
use crate::wire::{body, tag};

/// How long the reads on a lane may be expected to take together.
const BACKLOG: Duration = Duration::from_millis(1);
/// Reads on a lane at most.
const DEEPEST: usize = 64;
/// The largest answer that a lane holds.
const LARGEST: usize = 64 << 10;
/// Whoever is not answered after this time blocks the lane.
pub(super) const STUCK: Duration = Duration::from_millis(50);

/// A lane whose connection is there.
pub(super) struct Open {
    lease: Lease<RoleConnector>,
    dictionary: Arc<Dictionary>,
    /// The first is being answered.
    jobs: VecDeque<Job>,
    /// Wakes the driver.
    waker: Option<Waker>,
    /// Whether reads have come that are still to be sent, and the driver knows.
    gathering: bool,
    /// When the last answer came, or the first read behind it was sent.
    mark: Instant,
    /// How long the jobs are expected to take.
    backlog: Duration,
}

/// What the driver has to do.
pub(super) enum Due {
    /// Reads have come: when those of others have come too, they are sent.
    Gather,
    /// Nothing more can come of the lane.
    End,
}

/// The lane cannot go on.
struct Broken;

impl Open {
    pub(super) fn new(lease: Lease<RoleConnector>, dictionary: Arc<Dictionary>) -> Self {
        Self {
            lease,
            dictionary,
            jobs: VecDeque::new(),
            waker: None,
            gathering: false,
            mark: Instant::now(),
            backlog: Duration::ZERO,
        }
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether others wait for the connection, or it is to be closed.
    pub(super) fn is_missed(&self) -> bool {
        self.lease.is_missed()
    }

    /// Whether the lane has room. One that has nothing to do always has.
    pub(super) fn has_room(&self) -> bool {
        self.jobs.is_empty() || (self.jobs.len() < DEEPEST && self.backlog < BACKLOG)
    }

    /// Takes a read, if it is known and harmless.
    pub(super) fn take(&mut self, task: &Task<'_>) -> Option<oneshot::Receiver<Answer>> {
        let now = Instant::now();
        let (prepared, guessed) = self.lease.known(task)?;
        if !prepared.shape.pace.is_quick(now) || task.is_suspect(&prepared) {
            return None;
        }
        self.lease.push_read(task, &prepared, guessed)?;
        if guessed {
            self.lease.statements.keep(task.bound, prepared.clone());
        }
        if self.jobs.is_empty() {
            self.mark = now;
        }
        self.backlog += prepared.shape.pace.expected();
        let (reply, answer) = oneshot::channel();
        self.jobs.push_back(Job {
            statement: task.bound.statement.clone(),
            prepared,
            asked: now,
            rows: Vec::new(),
            failed: false,
            reply,
        });
        self.gathering = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        Some(answer)
    }

    /// Sends and receives as far as that goes now. What has come to be sent is sent only when
    /// `send` says so.
    pub(super) fn poll(&mut self, send: bool, cx: &mut Context<'_>) -> Poll<Due> {
        if self.gathering {
            if !send {
                return Poll::Ready(Due::Gather);
            }
            self.gathering = false;
        }
        loop {
            match self.lease.channel.poll_exchange(cx) {
                Poll::Ready(Ok(())) if self.receive().is_ok() => {}
                Poll::Ready(_) => return Poll::Ready(Due::End),
                Poll::Pending => {
                    self.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        }
    }

    /// Takes the messages that are here.
    fn receive(&mut self) -> Result<(), Broken> {
        let mut ended = Vec::new();
        let outcome = loop {
            match self.lease.channel.inbound.advance() {
                Ok(Some(tag::READY_FOR_QUERY)) => match self.end_job() {
                    Ok(job) => ended.push(job),
                    Err(broken) => break Err(broken),
                },
                Ok(Some(tag)) => {
                    if let Err(broken) = self.receive_one(tag) {
                        break Err(broken);
                    }
                }
                Ok(None) => break Ok(()),
                Err(_) => break Err(Broken),
            }
        };
        let clean = self.answer(ended);
        outcome.and(clean)
    }

    fn receive_one(&mut self, tag: u8) -> Result<(), Broken> {
        let connection = &mut *self.lease;
        if connection.is_aside(tag).map_err(|_| Broken)? {
            return Ok(());
        }
        let job = self.jobs.front_mut().ok_or(Broken)?;
        let inbound = &connection.channel.inbound;
        match tag {
            tag::DATA_ROW if job.rows.len() + inbound.message().len() > LARGEST => {
                job.failed = true;
                return Err(Broken);
            }
            tag::DATA_ROW => job.rows.extend_from_slice(inbound.message()),
            tag::ROW_DESCRIPTION => {
                let fields = body::row_description(inbound.body());
                job.failed |= fields.is_none_or(|fields| fields != job.prepared.shape.fields);
            }
            tag::NO_DATA => job.failed |= !job.prepared.shape.fields.is_empty(),
            tag::ERROR_RESPONSE => job.failed = true,
            tag::PARSE_COMPLETE
            | tag::BIND_COMPLETE
            | tag::CLOSE_COMPLETE
            | tag::COMMAND_COMPLETE
            | tag::EMPTY_QUERY_RESPONSE => {}
            _ => return Err(Broken),
        }
        Ok(())
    }

    fn end_job(&mut self) -> Result<Job, Broken> {
        let connection: &mut Connection = &mut self.lease;
        connection.ready_for_query().map_err(|_| Broken)?;
        if connection.transaction != TransactionStatus::Idle {
            return Err(Broken);
        }
        self.jobs.pop_front().ok_or(Broken)
    }

    /// Answers those whose answers have come in whole.
    fn answer(&mut self, ended: Vec<Job>) -> Result<(), Broken> {
        if ended.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        let count = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        let each = (now - self.mark) / count;
        self.mark = now;
        let mut clean = Ok(());
        for job in ended {
            let expected = job.prepared.shape.pace.expected();
            self.backlog = self.backlog.saturating_sub(expected);
            let text = job.statement.text();
            // A definition that has come meanwhile may have counted.
            if (self.dictionary.belief).suspects(text, &job.prepared.verdict) {
                self.lease.residue = self.lease.residue.max(Residue::Session);
                self.lease.stirred = true;
                clean = Err(Broken);
            }
            if job.failed {
                self.lease.statements.retire();
                job.fail(now);
            } else {
                job.prepared.shape.pace.was_served(each);
                job.end();
            }
        }
        if self.jobs.is_empty() {
            self.backlog = Duration::ZERO;
        }
        clean
    }

    /// Whether the first read has waited too long.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        let first = self.jobs.front();
        first.is_some_and(|job| now - job.asked.max(self.mark) > STUCK)
    }

    /// Gives the connection back. Those who wait run their reads on connections of their own; the
    /// pool ends what still runs here.
    pub(super) fn end(mut self) {
        let now = Instant::now();
        let stuck = self.is_stuck(now);
        let fails = |job: &mut Job| stuck || job.failed;
        if let Some(job) = self.jobs.pop_front_if(fails) {
            job.fail(now);
        }
        let redefinition = told(&mut self.lease, &self.dictionary);
        if redefinition.is_some() {
            self.dictionary.forget();
        }
    }
}
