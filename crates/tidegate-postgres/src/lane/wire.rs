//! The side of a lane that PostgreSQL sees: a connection with the reads that were sent. Only the
//! driver has it, so nobody waits for a lock while bytes move.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::crowd::State;
use super::intake::Intake;
use super::job::Job;
use crate::connection::{Connection, TransactionStatus};
use crate::dictionary::Dictionary;
use crate::executor::{RoleConnector, told};
use crate::pool::Lease;
use crate::session::cache::StatementCache;
use crate::session::reset::Residue;
use crate::wire::rejection::ServerError;
use crate::wire::{body, tag};

/// The largest answer that a lane holds.
const LARGEST: usize = 64 << 10;
/// Whoever is answered later than this after the one before blocks the lane.
const STUCK: Duration = Duration::from_millis(50);
/// Nobody waits longer than this, whoever is in front.
const PATIENCE: Duration = Duration::from_millis(100);
/// Whoever takes longer than this is not quick.
const SLOW: Duration = Duration::from_millis(5);

/// A lane may run a statement again elsewhere, so PostgreSQL must refuse whatever writes (25006):
/// that a text looks like a read does not prove that it is one.
const READ_ONLY: &str = "SET default_transaction_read_only = on";

pub(super) struct Wire {
    lease: Lease<RoleConnector>,
    dictionary: Arc<Dictionary>,
    /// The first is being answered.
    jobs: VecDeque<Job>,
    /// When the last answer came, or the first read behind it was sent.
    mark: Instant,
}

/// The lane cannot go on.
pub(super) struct Broken;

/// Answers a read that took so long.
fn end_one(job: Job, each: Duration, now: Instant) {
    if !job.is_good() {
        return job.fail(now);
    }
    let pace = job.prepared.shape.pace.clone();
    job.end();
    if each > SLOW {
        pace.was_slow(now);
    } else {
        pace.was_served(each);
    }
}

impl Wire {
    /// Takes over a connection and makes its transactions read-only; gives the side for requests.
    /// `None` when that fails.
    pub(super) async fn open(
        mut lease: Lease<RoleConnector>,
        dictionary: Arc<Dictionary>,
        switch: Option<&'static str>,
    ) -> Option<(Self, Intake)> {
        // However the lane ends, the setting is reset before the connection is lent again.
        lease.session.leave(Residue::Session);
        lease.simple(READ_ONLY);
        lease.prepare_switch(switch).ok()?;
        let deadline = Some(Instant::now() + PATIENCE);
        for _ in 0..2 {
            loop {
                match lease.next(deadline).await.ok()? {
                    tag::READY_FOR_QUERY => break,
                    tag::ERROR_RESPONSE => {
                        lease.session.statements.forget_switch();
                        return None;
                    }
                    _ => {}
                }
            }
            lease.ready_for_query().ok()?;
        }
        let statements = std::mem::replace(&mut lease.session.statements, StatementCache::new(1));
        let wire = Self {
            lease,
            dictionary,
            jobs: VecDeque::new(),
            mark: Instant::now(),
        };
        Some((wire, Intake::new(statements)))
    }

    /// Whether nobody waits for an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether others wait for the connection, or it is to be closed.
    pub(super) fn is_missed(&self) -> bool {
        self.lease.is_missed()
    }

    /// Takes what requests have asked.
    pub(super) fn load(&mut self, intake: &mut Intake) {
        if self.jobs.is_empty() {
            self.mark = Instant::now();
        }
        let jobs = intake.drain(&mut self.lease.channel.outbound);
        self.lease.expect_answers(jobs.len());
        self.jobs.extend(jobs);
    }

    /// Sends and receives as far as that goes now. Ready when the lane is over.
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

    /// Takes the messages that are here.
    fn receive(&mut self, state: &Mutex<State>) -> Result<(), Broken> {
        let mut ended = Vec::new();
        let mut outcome = self.read(&mut ended);
        if !ended.is_empty() {
            outcome = outcome.and(self.answer(ended, state));
        }
        // A definition that was told of: not by harmless reads.
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
            // A setting has changed, such as the one that keeps the lane read-only.
            Ok(true) if tag == tag::PARAMETER_STATUS => return Err(Broken),
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
            tag::DATA_ROW if job.rows.len() + inbound.message().len() > LARGEST => {
                job.break_off(false);
                return Err(Broken);
            }
            tag::DATA_ROW => job.rows.extend_from_slice(inbound.message()),
            tag::ROW_DESCRIPTION => {
                let fields = body::row_description(inbound.body());
                if fields.is_none_or(|fields| fields != job.prepared.shape.fields) {
                    job.contradict();
                }
            }
            tag::NO_DATA => job.contradict(),
            tag::ERROR_RESPONSE => {
                let error = ServerError::read(inbound.body());
                // The session ends, and not by what is read: it was terminated, or PostgreSQL
                // shuts down.
                if error.rejection.fatal {
                    return Err(self.breach());
                }
                job.break_off(error.is_stale_statement());
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

    /// Answers those whose answers have come in whole.
    fn answer(&mut self, ended: Vec<Job>, state: &Mutex<State>) -> Result<(), Broken> {
        if let Some(intake) = &mut state.lock().intake {
            for job in &ended {
                intake.end(job);
            }
        }
        let now = Instant::now();
        let count = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        let each = (now - self.mark) / count;
        self.mark = now;
        for job in ended {
            let (statement, verdict) = (job.statement.clone(), job.prepared.verdict.clone());
            // A definition that has come meanwhile may have counted, and those behind have run in
            // what it left.
            let suspect = self.dictionary.belief.suspects(&statement, &verdict);
            end_one(job, each, now);
            if suspect {
                self.lease.session.leave(Residue::Session);
                return Err(Broken);
            }
        }
        Ok(())
    }

    /// Whether the first read has waited too long.
    pub(super) fn is_stuck(&self, now: Instant) -> bool {
        let waits =
            |job: &Job| now - job.asked.max(self.mark) > STUCK || now - job.asked > PATIENCE;
        self.jobs.front().is_some_and(waits)
    }

    /// Gives the connection back. Those who wait run their reads on connections of their own; the
    /// pool ends what still runs here.
    pub(super) fn end(mut self, intake: Option<Intake>) {
        let now = Instant::now();
        let stuck = self.is_stuck(now);
        let fails = |job: &mut Job| stuck || job.has_failed();
        if let Some(job) = self.jobs.pop_front_if(fails) {
            job.fail(now);
        }
        match intake.and_then(Intake::into_statements) {
            Some(statements) => self.lease.session.statements = statements,
            // PostgreSQL holds statements that nobody knows any more.
            None => self.lease.session.leave(Residue::Everything),
        }
        let redefinition = told(&mut self.lease, &self.dictionary);
        if redefinition.is_some() {
            self.dictionary.forget();
        }
    }
}
