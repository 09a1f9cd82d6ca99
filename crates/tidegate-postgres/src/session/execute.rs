//! Runs a statement: one write, then reads; rows are pushed into the sink as they arrive.

use std::sync::Arc;

use tidegate_sql::statement::Kind;
use tidegate_sql::{Completion, DatabaseError, Error, Flow, RowSink};
use tidegate_values::RawRow;
use tidegate_wire::body::{self, FieldDescription};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;
use tokio::time::Instant;

use super::parameter_sets::Progress;
use crate::connection::{Connection, Prefix, TransactionStatus};
use crate::metadata::{MetadataCache, StatementKey};
use crate::purity::DdlGuard;
use crate::statement::{
    AttemptError, CallerSwitch, PreparedStatement, RunError, SideEffects, StatementTask,
    TransactionPosition,
};

/// One attempt to run a statement.
pub(super) struct Execution<'a> {
    pub(super) task: &'a StatementTask<'a>,
    pub(super) began: Instant,
    pub(super) prepared: Arc<PreparedStatement>,
    /// Whether the description comes from another connection and PostgreSQL has not confirmed it
    /// yet.
    pub(super) unconfirmed: bool,
    deadline: Option<Instant>,
    pub(super) progress: Progress,
    /// How many parameter sets PostgreSQL has bound.
    pub(super) bound: usize,
    /// How many parameter sets PostgreSQL has run.
    pub(super) ended: usize,
    pub(super) announced: bool,
    pub(super) affected: Option<u64>,
    pub(super) failure: Option<ServerError>,
}

impl Connection {
    /// Runs a statement with all its parameter sets and pushes its rows into the sink.
    ///
    /// On return, `ReadyForQuery` was received, except after an error of the sink, a broken stream
    /// or a passed deadline. In these cases the connection must be recovered.
    pub(crate) async fn run(
        &mut self,
        task: &StatementTask<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, RunError> {
        let mut again = task.position != TransactionPosition::Within;
        loop {
            match self.attempt(task, sink).await {
                Ok(completion) => return Ok(completion),
                Err(AttemptError::Final(error)) => return Err(self.run_error(error)),
                Err(AttemptError::Stale(error)) => {
                    // Nothing has run, so a second attempt with a new description is safe.
                    self.forget(task);
                    if !again && task.has_stale_hint(&error) {
                        return Err(self.rejected(*error, task.bound).into());
                    }
                    if !again {
                        task.metadata.invalidate_descriptions();
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
        task: &StatementTask<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, AttemptError> {
        self.session.prefix = Prefix::default();
        // Recorded before the attempt, so that the session is reset even if the attempt fails at
        // once.
        self.note_side_effects(task, false);
        let known = if self.may_use_cached(task).await? {
            self.session.statements.known(task, true)
        } else {
            None
        };
        let (prepared, unconfirmed) = match known {
            Some(known) => known,
            None => (self.prepare(task).await?, false),
        };
        // The prepared statement caches whether its text mentions untrusted names.
        self.note_side_effects(task, task.is_impure(&prepared));
        let mut run = Execution::new(task, prepared, unconfirmed);
        self.begin_pipeline();
        self.push_prefix(task.begins(), task.switch)?;
        if unconfirmed {
            let types = run
                .prepared
                .description
                .parameters
                .iter()
                .map(tidegate_values::Type::oid);
            self.push_parse(task, &run.prepared.name, types)?;
        }
        self.exchange_sets(&mut run, sink).await
    }

    /// Distinguishes a refused switch to the caller from other errors.
    pub(crate) fn run_error(&self, error: Error) -> RunError {
        if self.session.prefix.is_refused() {
            RunError::RoleRefused(error)
        } else {
            RunError::Failed(error)
        }
    }

    /// Records what the statement may leave in the session.
    pub(super) fn note_side_effects(&mut self, task: &StatementTask<'_>, impure: bool) {
        let left = SideEffects::of(task.bound, &task.login.role_use, impure);
        self.session.note_side_effects(left);
    }

    pub(super) fn forget(&mut self, task: &StatementTask<'_>) {
        self.session.statements.forget(task);
        task.metadata
            .forget_description(task.bound, &task.login.role);
        task.metadata.forget_hints(task.bound, &task.login.role);
    }

    /// The error for a definition that changed after its statement was prepared, inside a
    /// transaction.
    pub(super) fn stale(&mut self, mut error: ServerError, task: &StatementTask<'_>) -> Error {
        "40001".clone_into(&mut error.rejection.sqlstate);
        DatabaseError::REDEFINED.clone_into(&mut error.rejection.message);
        self.rejected(error, task.bound)
    }

    async fn exchange_sets(
        &mut self,
        run: &mut Execution<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, AttemptError> {
        loop {
            // Parameter sets are queued between reads, so that full buffers on both sides cannot
            // deadlock.
            self.fill(run.task, &run.prepared, &mut run.progress, run.unconfirmed)?;
            let tag = match self.channel.inbound.advance() {
                Ok(Some(tag)) => tag,
                Ok(None) => {
                    if let Err(halt) = self.channel.exchange(run.deadline).await {
                        let ended = self.read_error(halt);
                        return Err(self
                            .stream_error(run.failure.take(), ended, run.task)
                            .into());
                    }
                    continue;
                }
                Err(error) => return Err(self.read_error(error.into()).into()),
            };
            if self.session.prefix.is_pending() && self.is_asynchronous(tag)? {
                if self.session.prefix.is_refused() {
                    // After the error, PostgreSQL skips everything up to the Sync.
                    self.cut(run.task, &mut run.progress);
                }
                continue;
            }
            if tag == tag::DATA_ROW {
                self.push_row(run, sink).await?;
            } else if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                return self.conclude(run, sink);
            } else if !self.is_asynchronous(tag)? {
                self.take(tag, run, sink)?;
            }
        }
    }

    async fn push_row(
        &mut self,
        run: &mut Execution<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        if run.failure.is_some() {
            return Ok(());
        }
        run.announce(sink)?;
        let values = self.channel.inbound.body().get(2..);
        let row =
            values.and_then(|values| RawRow::new(run.prepared.description.columns.len(), values));
        let Some(row) = row else {
            return Err(self.protocol_error("a row of another description"));
        };
        if sink.row(row)? == Flow::Wait {
            // While the sink is not ready, nothing is read from PostgreSQL, so PostgreSQL waits
            // too. This time does not count against the statement's deadline; the caller of the
            // reader's connection limits it.
            let began = Instant::now();
            sink.ready().await?;
            let waited = began.elapsed();
            run.deadline = run.deadline.map(|deadline| deadline + waited);
            run.began += waited;
        }
        Ok(())
    }

    fn take(
        &mut self,
        tag: u8,
        run: &mut Execution<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<(), AttemptError> {
        match tag {
            tag::BIND_COMPLETE => {
                run.bound += 1;
                if run.announces_at_bind() {
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
                None => return Err(self.protocol_error("an unreadable description").into()),
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
                    .protocol_error(&format!("an unexpected message `{name}`"))
                    .into());
            }
        }
        Ok(())
    }

    /// Processes the result after `ReadyForQuery`.
    fn conclude(
        &mut self,
        run: &mut Execution<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, AttemptError> {
        if let Some(refusal) = self.refusal() {
            return Err(self.rejected(refusal, run.task.bound).into());
        }
        let wanted = match (run.task.position, &run.failure) {
            (TransactionPosition::Alone, _) => TransactionStatus::Idle,
            (_, Some(_)) => TransactionStatus::Failed,
            (_, None) => TransactionStatus::Open,
        };
        // A definition that was committed in the meantime may have made the statement impure.
        let impure = run.task.is_impure(&run.prepared);
        self.note_side_effects(run.task, impure);
        self.note_name_changes(run.task, impure);
        let failure = run.failure.take();
        if failure.is_some() && run.unconfirmed {
            self.session.statements.discard(&run.prepared.name);
        }
        if let Some(wrong) = run.progress.wrong.take() {
            return Err(AttemptError::Final(Error::Input(wrong)));
        }
        if let Some(error) = failure {
            let untouched = !run.announced
                && (error.is_stale_statement()
                    || run.task.has_stale_hint(&error)
                    || (run.unconfirmed && error.is_bad_guess()));
            if untouched {
                return Err(AttemptError::Stale(Box::new(error)));
            }
            let is_first = run.task.position != TransactionPosition::Within;
            if is_first && !run.announced && run.task.is_seal_refused(&error) {
                self.session.prefix.refuse(error.clone());
            }
            return Err(self.rejected(error, run.task.bound).into());
        }
        if self.session.transaction() != wanted {
            return Err(self
                .protocol_error("the statement changed the transaction around it")
                .into());
        }
        run.announce(sink)?;
        run.prepared
            .description
            .latency
            .record_direct(run.began.elapsed());
        if run.unconfirmed && run.task.is_kept() {
            self.session
                .statements
                .keep(StatementKey::of(run.task.bound), run.prepared.clone());
        }
        Ok(Completion {
            affected_rows: run.affected,
        })
    }
}

/// Starts a DDL guard if the event trigger reported a definition that the statement's text does not
/// show: one made by a function, a trigger or a view.
pub(crate) fn take_reported_ddl(
    connection: &mut Connection,
    metadata: &MetadataCache,
) -> Option<DdlGuard> {
    let told = connection.session.take_ddl();
    told.then(|| DdlGuard::begin(&metadata.purity))
}

impl<'a> Execution<'a> {
    pub(super) fn new(
        task: &'a StatementTask<'a>,
        prepared: Arc<PreparedStatement>,
        unconfirmed: bool,
    ) -> Self {
        Self {
            task,
            began: Instant::now(),
            prepared,
            unconfirmed,
            deadline: task.deadline,
            progress: Progress::default(),
            bound: 0,
            ended: 0,
            announced: false,
            affected: (task.bound.statement.kind() == Kind::Write).then_some(0),
            failure: None,
        }
    }

    /// The place in the request of a value that PostgreSQL could not read. The error belongs to a
    /// Bind if every bound set has already run.
    pub(super) fn unread(&self, error: &ServerError) -> Option<String> {
        let placeholder = error.parameter?.checked_sub(1)?;
        let binding = self.bound == self.ended;
        binding.then(|| self.task.bound.place(self.bound, placeholder))
    }

    /// Whether the columns are passed to the sink when the statement is bound. An unconfirmed
    /// description waits for that of the portal.
    pub(super) fn announces_at_bind(&self) -> bool {
        !self.unconfirmed && self.announces_before_rows()
    }

    /// Whether the columns are passed to the sink before the first row. A statement with sealed
    /// claims may be repeated until then.
    fn announces_before_rows(&self) -> bool {
        !matches!(self.task.switch, Some(CallerSwitch::Claims(_)))
    }

    /// Passes the columns to the sink, once.
    pub(super) fn announce(&mut self, sink: &mut dyn RowSink) -> Result<(), Error> {
        if self.announced {
            return Ok(());
        }
        self.announced = true;
        sink.columns(&self.prepared.description.columns)
    }

    /// Compares an unconfirmed description with the one that PostgreSQL sent.
    pub(super) fn confirm(
        &mut self,
        fields: &[FieldDescription],
        sink: &mut dyn RowSink,
    ) -> Result<(), Error> {
        let matches = fields == self.prepared.description.fields;
        if matches || self.task.bound.statement.kind() != Kind::Read {
            return if self.announces_before_rows() {
                self.announce(sink)
            } else {
                Ok(())
            };
        }
        self.failure.get_or_insert_with(ServerError::stale);
        Ok(())
    }

    pub(super) fn count(&mut self, (command, rows): (&str, Option<u64>)) {
        match (&mut self.affected, command, rows) {
            (Some(sum), "INSERT" | "UPDATE" | "DELETE" | "MERGE", Some(rows)) => *sum += rows,
            // For a SELECT with data-modifying CTEs, PostgreSQL counts the rows that it returns and
            // not those that it writes.
            (affected, _, _) => *affected = None,
        }
    }
}
