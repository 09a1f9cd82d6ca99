//! The side of a multiplexed connection that PostgreSQL sees: the connection, and the pipelines
//! that were sent. Only the driver has it, so no request waits for a lock while bytes move.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::Lease;
use tidegate_wire::rejection::ServerError;
use tidegate_wire::{body, tag};
use tokio::time::Instant;

use super::job::{Fault, Job};
use super::queue::Queue;
use super::slot::State;
use crate::connection::{Connection, TransactionStatus};
use crate::dictionary::Dictionary;
use crate::executor::{RoleConnector, told};
use crate::session::reset::Residue;

/// The largest answer that is held in memory.
const LARGEST: usize = 1 << 20;
/// Statements with larger answers get a connection of their own, which streams them.
const LARGE: usize = 64 << 10;
/// When the first pipeline has kept those behind it waiting for too long.
const STUCK: Duration = Duration::from_millis(100);
/// No pipeline waits longer than this in total.
const PATIENCE: Duration = Duration::from_millis(200);
/// A statement that takes longer than this was slow.
const SLOW: Duration = Duration::from_millis(20);
/// How long the session may take to get ready.
const OPENING: Duration = Duration::from_secs(1);

/// The setup of a session. A pipeline may run again elsewhere, so PostgreSQL must refuse to write
/// (25006): that a text looks like a read does not prove it. The isolation level gives the
/// statements of a pipeline one snapshot without `BEGIN` and `COMMIT` (PostgreSQL, "Transaction
/// Isolation").
const SETUP: &str = "SET default_transaction_read_only = on; \
    SET default_transaction_isolation = 'repeatable read'";

/// `read_only_sql_transaction`.
const WRITES: &str = "25006";

pub(super) struct Multiplexed {
    lease: Lease<RoleConnector>,
    dictionary: Arc<Dictionary>,
    /// The first is being answered.
    jobs: VecDeque<Job>,
    /// When the last answer came, or the first pipeline behind it was sent.
    mark: Instant,
}

/// The connection cannot go on.
pub(super) struct Broken;

impl Multiplexed {
    /// Takes over a connection and sets its session up; returns the side for requests too. `None`
    /// when that fails.
    pub(super) async fn open(
        mut lease: Lease<RoleConnector>,
        dictionary: Arc<Dictionary>,
        switch: Option<&'static str>,
    ) -> Option<(Self, Queue)> {
        // However it ends, the settings are reset before the connection is lent again.
        lease.session.leave(Residue::Session);
        lease.simple(SETUP);
        lease.prepare_switch(switch).ok()?;
        let deadline = Some(Instant::now() + OPENING);
        for _ in 0..2 {
            loop {
                match lease.next(deadline).await.ok()? {
                    tag::READY_FOR_QUERY => break,
                    tag::ERROR_RESPONSE => {
                        lease.session.statements.forget_own();
                        return None;
                    }
                    _ => {}
                }
            }
            lease.ready_for_query().ok()?;
        }
        let statements = lease.session.statements.take();
        let multiplexed = Self {
            lease,
            dictionary,
            jobs: VecDeque::new(),
            mark: Instant::now(),
        };
        Some((multiplexed, Queue::new(statements)))
    }

    /// Whether nothing was sent that is not answered.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether others wait for the connection, or it is to be closed.
    pub(super) fn is_wanted(&self) -> bool {
        self.lease.is_missed()
    }

    /// Takes the pipelines that requests have queued.
    pub(super) fn load(&mut self, queue: &mut Queue) {
        if self.jobs.is_empty() {
            self.mark = Instant::now();
        }
        let jobs = queue.drain(&mut self.lease.channel.outbound);
        self.lease.expect_answers(jobs.len());
        self.jobs.extend(jobs);
    }

    /// Sends and receives as far as that goes now. Ready when the connection has failed.
    pub(super) fn poll(&mut self, state: &Mutex<State>, cx: &mut Context<'_>) -> Poll<Broken> {
        loop {
            match self.lease.channel.poll_exchange(cx) {
                Poll::Ready(Ok(())) => {
                    if let Err(broken) = self.receive(state) {
                        return Poll::Ready(broken);
                    }
                }
                Poll::Ready(Err(_)) => {
                    self.lease.give_up();
                    return Poll::Ready(Broken);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Takes the messages that have come.
    fn receive(&mut self, state: &Mutex<State>) -> Result<(), Broken> {
        let mut ended = Vec::new();
        let mut outcome = self.read(&mut ended);
        if !ended.is_empty() {
            outcome = outcome.and(self.answer(ended, state));
        }
        // The database announced a definition, which harmless reads do not cause.
        if self.lease.session.is_redefined() {
            return Err(Broken);
        }
        outcome
    }

    fn read(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        loop {
            match self.lease.channel.inbound.advance() {
                Ok(Some(tag::READY_FOR_QUERY)) => ended.push(self.end_job()?),
                Ok(Some(tag)) => self.read_one(tag)?,
                Ok(None) => return Ok(()),
                Err(_) => return Err(self.breach()),
            }
        }
    }

    fn read_one(&mut self, tag: u8) -> Result<(), Broken> {
        let connection: &mut Connection = &mut self.lease;
        match connection.is_aside(tag) {
            // A setting has changed, such as the one that keeps the session read-only.
            Ok(true)
                if tag == tag::PARAMETER_STATUS
                    && !body::tells_of_role(connection.channel.inbound.body()) =>
            {
                return Err(Broken);
            }
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(_) => return Err(self.breach()),
        }
        let Some(job) = self.jobs.front_mut() else {
            return Err(self.breach());
        };
        if job.takes_switch(tag) {
            return Ok(());
        }
        let inbound = &connection.channel.inbound;
        match tag {
            tag::DATA_ROW => {
                job.keep_row(inbound.message());
                if job.size() > LARGEST {
                    job.fail(Fault::Large);
                    return Err(Broken);
                }
            }
            tag::ROW_DESCRIPTION | tag::NO_DATA => {
                let fields = match tag {
                    tag::NO_DATA => None,
                    _ => body::row_description(inbound.body()),
                };
                let is_as_known = job
                    .current()
                    .is_some_and(|step| fields.as_ref() == Some(&step.prepared.shape.fields));
                if !is_as_known {
                    job.fail(Fault::Stale);
                }
            }
            tag::ERROR_RESPONSE => {
                let error = ServerError::read(inbound.body());
                // The session ends for another reason than what is read: it was terminated, or
                // PostgreSQL shuts down.
                if error.rejection.fatal {
                    return Err(self.breach());
                }
                job.fail(fault(&error));
            }
            tag::COMMAND_COMPLETE => job.complete(),
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::CLOSE_COMPLETE => {}
            _ => return Err(self.breach()),
        }
        Ok(())
    }

    fn end_job(&mut self) -> Result<Job, Broken> {
        let connection: &mut Connection = &mut self.lease;
        let ready = connection.ready_for_query().is_ok();
        if !ready || connection.session.transaction() != TransactionStatus::Idle {
            return Err(self.breach());
        }
        self.jobs.pop_front().ok_or_else(|| self.breach())
    }

    fn breach(&mut self) -> Broken {
        self.lease.give_up();
        Broken
    }

    /// Answers the pipelines whose answers are complete.
    fn answer(&mut self, ended: Vec<Job>, state: &Mutex<State>) -> Result<(), Broken> {
        if let Some(queue) = &mut state.lock().queue {
            for job in &ended {
                queue.end(job);
            }
        }
        let now = Instant::now();
        let steps: usize = ended.iter().map(|job| job.steps.len()).sum();
        let each = (now - self.mark) / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        self.mark = now;
        for job in ended {
            // A definition that has come meanwhile may have counted, and the pipelines behind have
            // run in the session that it left.
            let suspect = job.steps.iter().any(|step| {
                let verdict = &step.prepared.verdict;
                self.dictionary.belief.suspects(&step.statement, verdict)
            });
            end_one(job, each, now);
            if suspect {
                self.lease.session.leave(Residue::Session);
                return Err(Broken);
            }
        }
        Ok(())
    }

    /// Whether the first pipeline has waited for too long.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        let waits = |job: &Job| self.holds_up(job, now) || now - job.asked > PATIENCE;
        self.jobs.front().is_some_and(waits)
    }

    /// Whether the first pipeline takes too long itself.
    fn holds_up(&self, job: &Job, now: Instant) -> bool {
        now - job.asked.max(self.mark) > STUCK
    }

    /// Gives the connection back. Requests that wait run on connections of their own; the pool
    /// cancels what still runs here.
    pub(super) fn end(mut self, queue: Option<Queue>) {
        let now = Instant::now();
        if let Some(job) = self.jobs.front() {
            let is_large = job.fault() == Some(Fault::Large);
            if is_large || self.holds_up(job, now) {
                job.ban(now);
            }
        }
        match queue.and_then(Queue::into_statements) {
            Some(statements) => self.lease.session.statements = statements,
            // PostgreSQL may hold statements that the cache does not know.
            None => self.lease.session.leave(Residue::Everything),
        }
        let redefinition = told(&mut self.lease, &self.dictionary);
        if redefinition.is_some() {
            self.dictionary.forget();
        }
    }
}

/// What an error says of the pipeline.
fn fault(error: &ServerError) -> Fault {
    match () {
        () if error.is_stale_statement() => Fault::Stale,
        () if error.is(WRITES) => Fault::Writes,
        () => Fault::Refused,
    }
}

/// Answers a pipeline, each of whose statements took so long.
fn end_one(job: Job, each: Duration, now: Instant) {
    match job.fault() {
        // The request runs it again on a connection of its own.
        Some(Fault::Refused | Fault::Stale) => return,
        Some(Fault::Writes | Fault::Large) => return job.ban(now),
        None if !job.is_good() => return,
        None => {}
    }
    if job.size() > LARGE {
        job.ban(now);
    }
    for step in &job.steps {
        let pace = &step.prepared.shape.pace;
        if each > SLOW {
            pace.was_slow(now);
        } else {
            pace.was_served(each);
        }
    }
    job.answer();
}
