//! Running a statement: one write, one read, rows pushed as they come.

use std::sync::Arc;

use tidegate_sql::statement::Kind;
use tidegate_sql::{Completion, DatabaseError, Error, Flow, RowSink};
use tidegate_values::RawRow;
use tidegate_wire::body::{self, Field};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::{outage, tag};
use tokio::time::Instant;

use super::cache::Prepared;
use super::pipeline::Progress;
use super::prefix::Prefix;
use super::reset::Residue;
use super::task::{Failure, Place, RunError, Task};
use crate::connection::{Condition, Connection, TransactionStatus};

/// One attempt to run a statement.
pub(super) struct Run<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) began: Instant,
    pub(super) prepared: Arc<Prepared>,
    /// Whether the shape is that of an earlier use and has not been confirmed yet.
    pub(super) guessed: bool,
    deadline: Option<Instant>,
    pub(super) progress: Progress,
    /// Sets that PostgreSQL has bound.
    pub(super) bound: usize,
    /// Sets that it has run.
    pub(super) ended: usize,
    pub(super) announced: bool,
    pub(super) affected: Option<u64>,
    pub(super) failure: Option<ServerError>,
}

impl Connection {
    /// Runs a statement with all its sets and pushes its rows into the sink.
    ///
    /// When this returns, `ReadyForQuery` has come, except after an error of the sink, of the
    /// stream, or a passed deadline; then the connection must be settled.
    pub(crate) async fn run(
        &mut self,
        task: &Task<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, RunError> {
        let mut again = task.place != Place::Within;
        loop {
            match self.attempt(task, sink).await {
                Ok(completion) => return Ok(completion),
                Err(Failure::Final(error)) => return Err(self.run_error(error)),
                Err(Failure::Stale(error)) => {
                    self.forget(task);
                    if !again && task.has_lost_hint(&error) {
                        return Err(self.rejected(*error, task.bound).into());
                    }
                    if !again {
                        task.dictionary.distrust();
                        return Err(self.stale(*error, task).into());
                    }
                    again = false;
                    self.rewind(task.deadline).await?;
                }
            }
        }
    }

    async fn attempt(
        &mut self,
        task: &Task<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, Failure> {
        self.session.prefix = Prefix::default();
        // Also when it fails at once: what is in doubt is reset.
        self.leave(task, false);
        let known = if self.may_use_what_is_known(task).await? {
            self.session.statements.known(task, true)
        } else {
            None
        };
        let (prepared, guessed) = match known {
            Some(known) => known,
            None => (self.prepare(task).await?, false),
        };
        self.leave(task, task.is_suspect(&prepared));
        let mut run = Run::new(task, prepared, guessed);
        self.begin_pipeline();
        self.push_prefix(task.begins(), task.switch)?;
        if guessed {
            let types = run
                .prepared
                .shape
                .parameters
                .iter()
                .map(tidegate_values::Type::oid);
            self.push_parse(task, &run.prepared.name, types)?;
        }
        self.exchange_sets(&mut run, sink).await
    }

    /// Tells a refused switch to the caller's role from other errors.
    pub(crate) fn run_error(&self, error: Error) -> RunError {
        if self.session.prefix.is_refused() {
            RunError::RoleRefused(error)
        } else {
            RunError::Failed(error)
        }
    }

    /// Back to where an attempt can start again.
    pub(super) async fn rewind(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if self.condition() == Condition::Resetting {
            self.finish_reset().await;
        }
        if self.session.transaction() != TransactionStatus::Idle {
            self.simple("ROLLBACK");
            while self.next(deadline).await? != tag::READY_FOR_QUERY {}
            self.ready_for_query()?;
        }
        match self.condition() {
            Condition::Closed => Err(outage("the session was lost between two attempts")),
            _ => Ok(()),
        }
    }

    /// Notes what the statement may leave in the session.
    pub(super) fn leave(&mut self, task: &Task<'_>, suspect: bool) {
        let left = Residue::of(task.bound, task.login.role_use, suspect);
        self.session.leave(left);
    }

    pub(super) fn forget(&mut self, task: &Task<'_>) {
        self.session.statements.forget(task);
        task.dictionary.forget_shape(task.bound, &task.login.role);
        task.dictionary.forget_hints(task.bound, &task.login.role);
    }

    /// The error for a definition that changed in the middle of a transaction.
    pub(super) fn stale(&mut self, mut error: ServerError, task: &Task<'_>) -> Error {
        "40001".clone_into(&mut error.rejection.sqlstate);
        DatabaseError::REDEFINED.clone_into(&mut error.rejection.message);
        self.rejected(error, task.bound)
    }

    async fn exchange_sets(
        &mut self,
        run: &mut Run<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, Failure> {
        loop {
            self.fill(run.task, &run.prepared, &mut run.progress, run.guessed)?;
            let tag = match self.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    if let Err(halt) = self.channel.exchange(run.deadline).await {
                        let ended = self.halted(halt);
                        return Err(self.last_word(run.failure.take(), ended, run.task).into());
                    }
                    continue;
                }
                Err(error) => return Err(self.halted(error.into()).into()),
            };
            if self.session.prefix.is_pending() && self.is_aside(tag)? {
                if self.session.prefix.is_refused() {
                    // PostgreSQL skips everything up to the Sync.
                    self.cut(run.task, &mut run.progress);
                }
                continue;
            }
            if tag == tag::DATA_ROW {
                self.push_row(run, sink).await?;
            } else if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                return self.conclude(run, sink);
            } else if !self.is_aside(tag)? {
                self.take(tag, run, sink)?;
            }
        }
    }

    async fn push_row(&mut self, run: &mut Run<'_>, sink: &mut dyn RowSink) -> Result<(), Error> {
        if run.failure.is_some() {
            return Ok(());
        }
        run.announce(sink)?;
        let values = self.channel.inbound.body().get(2..);
        let row = values.and_then(|values| RawRow::new(run.prepared.shape.columns.len(), values));
        let Some(row) = row else {
            return Err(self.breach("a row of another shape"));
        };
        if sink.row(row)? == Flow::Wait {
            // Nothing is read meanwhile, so PostgreSQL waits too. The time is the reader's, not
            // the statement's; whoever serves the reader decides how long it may take.
            let began = Instant::now();
            sink.ready().await?;
            let waited = began.elapsed();
            run.deadline = run.deadline.map(|deadline| deadline + waited);
            run.began += waited;
        }
        Ok(())
    }

    fn take(&mut self, tag: u8, run: &mut Run<'_>, sink: &mut dyn RowSink) -> Result<(), Failure> {
        match tag {
            tag::BIND_COMPLETE => {
                run.bound += 1;
                // A guess is confirmed by the description of the portal instead.
                if !run.guessed {
                    run.announce(sink)?;
                }
            }
            tag::NO_DATA => run.confirm(&[], sink)?,
            tag::COMMAND_COMPLETE => {
                run.ended += 1;
                run.count(body::command_tag(self.channel.inbound.body()));
                if run.ended == run.task.bound.sets.len() {
                    self.cut(run.task, &mut run.progress);
                }
            }
            tag::ROW_DESCRIPTION => match body::row_description(self.channel.inbound.body()) {
                Some(fields) => run.confirm(&fields, sink)?,
                None => return Err(self.breach("an unreadable description").into()),
            },
            tag::ERROR_RESPONSE => {
                let mut error = ServerError::read(self.channel.inbound.body());
                self.cut(run.task, &mut run.progress);
                error.rejection.place = run.unread(&error);
                run.failure.get_or_insert(error);
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE | tag::EMPTY_QUERY_RESPONSE => {}
            _ => {
                let name = char::from(tag).escape_default().to_string();
                return Err(self
                    .breach(&format!("an unexpected message `{name}`"))
                    .into());
            }
        }
        Ok(())
    }

    /// After `ReadyForQuery`: what came of it.
    fn conclude(
        &mut self,
        run: &mut Run<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, Failure> {
        if let Some(refusal) = self.refusal() {
            return Err(self.rejected(refusal, run.task.bound).into());
        }
        let wanted = match (run.task.place, &run.failure) {
            (Place::Alone, _) => TransactionStatus::Idle,
            (_, Some(_)) => TransactionStatus::Failed,
            (_, None) => TransactionStatus::Open,
        };
        // A definition that has come meanwhile may have counted.
        let suspect = run.task.is_suspect(&run.prepared);
        self.leave(run.task, suspect);
        self.ran(run.task, suspect);
        let failure = run.failure.take();
        if failure.is_some() && run.guessed {
            self.session.statements.discard(&run.prepared.name);
        }
        if let Some(wrong) = run.progress.wrong.take() {
            return Err(Failure::Final(Error::Input(wrong)));
        }
        if let Some(error) = failure {
            let untouched = !run.announced
                && (error.is_stale_statement()
                    || run.task.has_lost_hint(&error)
                    || (run.guessed && error.is_bad_guess()));
            if untouched {
                return Err(Failure::Stale(Box::new(error)));
            }
            return Err(self.rejected(error, run.task.bound).into());
        }
        if self.session.transaction() != wanted {
            return Err(self
                .breach("the statement changed the transaction around it")
                .into());
        }
        run.announce(sink)?;
        run.prepared.shape.pace.took(run.began.elapsed());
        if run.guessed && run.task.is_kept() {
            self.session
                .statements
                .keep(run.task.bound, run.prepared.clone());
        }
        Ok(Completion {
            affected_rows: run.affected,
        })
    }
}

impl<'a> Run<'a> {
    pub(super) fn new(task: &'a Task<'a>, prepared: Arc<Prepared>, guessed: bool) -> Self {
        Self {
            task,
            began: Instant::now(),
            prepared,
            guessed,
            deadline: task.deadline,
            progress: Progress::default(),
            bound: 0,
            ended: 0,
            announced: false,
            affected: (task.bound.statement.kind() == Kind::Write).then_some(0),
            failure: None,
        }
    }

    /// Where the value stands that PostgreSQL could not read: a set that is neither bound nor
    /// run is being bound.
    pub(super) fn unread(&self, error: &ServerError) -> Option<String> {
        let placeholder = error.parameter?.checked_sub(1)?;
        let binding = self.bound == self.ended;
        binding.then(|| self.task.bound.place(self.bound, placeholder))
    }

    /// Tells the sink the columns, once.
    pub(super) fn announce(&mut self, sink: &mut dyn RowSink) -> Result<(), Error> {
        if self.announced {
            return Ok(());
        }
        self.announced = true;
        sink.columns(&self.prepared.shape.columns)
    }

    /// Compares what was guessed with what PostgreSQL now says.
    pub(super) fn confirm(
        &mut self,
        fields: &[Field],
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let matches = fields == self.prepared.shape.fields;
        if matches || self.task.bound.statement.kind() != Kind::Read {
            return self.announce(sink);
        }
        self.failure.get_or_insert_with(ServerError::stale);
        Ok(())
    }

    pub(super) fn count(&mut self, (command, rows): (&str, Option<u64>)) {
        match (&mut self.affected, command, rows) {
            (Some(sum), "INSERT" | "UPDATE" | "DELETE" | "MERGE", Some(rows)) => *sum += rows,
            // A SELECT on top of writing parts: PostgreSQL counts what it returns, not those.
            (affected, _, _) => *affected = None,
        }
    }
}
