//! Runs a statement. It is sent in one write if possible, and its rows are pushed into the sink as
//! they arrive.
//!
//! Cached data of a statement (its tables, the types of its parameters) depends on the
//! `search_path`, on the role, and on the absence of temporary tables. A statement can change all
//! three for later statements of its transaction. So the session tracks whether names still resolve
//! as at the start of the session.

use tidegate_sql::{Completion, DatabaseError, Error, Flow, RowSink};
use tidegate_values::RawRow;
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;

use super::execution::Execution;
use super::internal_query::InternalQuery;
use crate::connection::{Connection, Prefix, TransactionStatus};
use crate::metadata::{MetadataCache, StatementKey};
use crate::purity::DdlGuard;
use crate::statement::{
    AttemptError, NameResolution, RunError, SideEffects, StatementTask, TransactionPosition,
};

/// Selects whether names resolve as at the start of the session. The parameter `$1` is the initial
/// `search_path`, and `$2` is the role that runs statements. The session has a temporary schema
/// only after it has created a temporary table.
const IS_INITIAL: &str = "SELECT pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.=) $1 \
    AND CURRENT_USER OPERATOR(pg_catalog.=) $2::pg_catalog.name \
    AND pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0::pg_catalog.oid";

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
                    // The statement can be repeated with a new description, because it has failed,
                    // or it is a read whose rows have not reached the sink.
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
        // The side effects are recorded first, so that the session is reset even if the attempt
        // fails immediately.
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
        // Side effects through untrusted names are recorded only now, because `prepared` caches
        // whether the text mentions such names.
        self.note_side_effects(task, task.is_impure(&prepared));
        let mut run = Execution::new(task, prepared, unconfirmed);
        self.begin_pipeline();
        self.push_prefix(task.begin_mode(), task.switch)?;
        self.exchange_sets(&mut run, sink).await
    }

    /// Classifies an error: PostgreSQL refused to switch to the caller's role or to seal the
    /// caller's claims, or the statement itself failed.
    pub(crate) fn run_error(&self, error: Error) -> RunError {
        if self.session.prefix.is_refused() {
            RunError::RoleRefused(error)
        } else {
            RunError::Failed(error)
        }
    }

    /// Records the side effects that the statement may have on the session.
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

    /// The error (40001) for a statement in a transaction if a definition that the statement uses
    /// has changed since the statement was prepared.
    pub(super) fn stale(&mut self, mut error: ServerError, task: &StatementTask<'_>) -> Error {
        "40001".clone_into(&mut error.rejection.sqlstate);
        DatabaseError::DEFINITION_CHANGED.clone_into(&mut error.rejection.message);
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
            self.fill(run)?;
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
            if self.session.prefix.is_pending() && self.handle_asynchronous(tag)? {
                if self.session.prefix.is_refused() {
                    // After the error, PostgreSQL skips everything up to the Sync, so the Sync is
                    // queued now.
                    self.end_pipeline(run);
                }
                continue;
            }
            if tag == tag::DATA_ROW {
                if self.push_row(run, sink)? == Flow::Wait {
                    run.wait_for(sink).await?;
                }
            } else if tag == tag::READY_FOR_QUERY {
                self.ready_for_query()?;
                return self.conclude(run, sink);
            } else if !self.handle_asynchronous(tag)? {
                self.handle_message(tag, run, sink)?;
            }
        }
    }

    fn push_row(&mut self, run: &mut Execution<'_>, sink: &mut dyn RowSink) -> Result<Flow, Error> {
        if run.failure.is_some() {
            return Ok(Flow::Continue);
        }
        run.announce(sink)?;
        let columns = run.prepared.description.columns.len();
        let Some(row) = RawRow::of_message(columns, self.channel.inbound.body()) else {
            return Err(self.protocol_error("a row of another description"));
        };
        sink.row(row)
    }

    fn handle_message(
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
            tag::NO_DATA | tag::ROW_DESCRIPTION => run.confirm(&self.fields(tag)?, sink)?,
            tag::COMMAND_COMPLETE => {
                if run.complete_set(self.channel.inbound.body()) {
                    self.end_pipeline(run);
                }
            }
            tag::ERROR_RESPONSE => {
                let mut error = ServerError::read(self.channel.inbound.body());
                self.end_pipeline(run);
                error.rejection.place = run.path_of_unreadable_value(&error);
                run.failure.get_or_insert(error);
            }
            tag::PARSE_COMPLETE | tag::CLOSE_COMPLETE | tag::EMPTY_QUERY_RESPONSE => {}
            _ => return Err(self.unexpected(tag).into()),
        }
        Ok(())
    }

    /// Records the changes that a statement may have made in the session. Call it after the
    /// statement has run.
    pub(super) fn note_changes(&mut self, run: &Execution<'_>) {
        // The check follows the statement: another session may have committed a changed definition
        // while the statement ran, and the change may have made the statement impure.
        let impure = run.task.is_impure(&run.prepared);
        self.note_side_effects(run.task, impure);
        let names = &mut self.session.name_resolution;
        *names = names.after(run.task.bound, impure);
    }

    /// Keeps the statement prepared, if this pipeline has prepared it.
    pub(super) fn keep_confirmed(&mut self, run: &Execution<'_>) {
        if run.unconfirmed && run.task.is_kept() {
            let key = StatementKey::of(run.task.bound);
            self.session.statements.keep(key, run.prepared.clone());
        }
    }

    /// Records the result of the statement after `ReadyForQuery`, and returns it.
    fn conclude(
        &mut self,
        run: &mut Execution<'_>,
        sink: &mut dyn RowSink,
    ) -> Result<Completion, AttemptError> {
        if let Some(refusal) = self.session.prefix.refusal() {
            return Err(self.rejected(refusal, run.task.bound).into());
        }
        let wanted = match (run.task.position, &run.failure) {
            (TransactionPosition::Alone, _) => TransactionStatus::Idle,
            (_, Some(_)) => TransactionStatus::Failed,
            (_, None) => TransactionStatus::Open,
        };
        self.note_changes(run);
        let failure = run.failure.take();
        if failure.is_some() && run.unconfirmed {
            self.session.statements.discard(&run.prepared.name);
        }
        if let Some(invalid) = run.progress.invalid.take() {
            return Err(AttemptError::Final(Error::Input(invalid)));
        }
        if let Some(error) = failure {
            if !run.announced && run.may_be_stale(&error) {
                return Err(AttemptError::Stale(Box::new(error)));
            }
            let is_first = run.task.position != TransactionPosition::Within;
            if is_first && !run.announced && run.task.is_seal_refused(&error) {
                self.session.prefix.note_refused_claims(error.clone());
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
        self.keep_confirmed(run);
        Ok(Completion {
            affected_rows: run.affected,
        })
    }

    /// Whether cached descriptions may be used. Queries PostgreSQL if a statement or code that the
    /// statement ran may have changed name resolution.
    pub(crate) async fn may_use_cached(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        match self.session.name_resolution {
            NameResolution::Initial | NameResolution::ProbablyInitial => Ok(true),
            NameResolution::Changed => Ok(false),
            NameResolution::Unknown => self.query_name_resolution(task).await,
        }
    }

    /// Whether new descriptions may be cached for other sessions. Queries PostgreSQL if any earlier
    /// statement, its triggers or its views may have changed name resolution.
    pub(crate) async fn may_cache(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        match self.session.name_resolution {
            NameResolution::Initial => Ok(true),
            NameResolution::Changed => Ok(false),
            NameResolution::ProbablyInitial | NameResolution::Unknown => {
                self.query_name_resolution(task).await
            }
        }
    }

    async fn query_name_resolution(&mut self, task: &StatementTask<'_>) -> Result<bool, Error> {
        let path = self.session.search_path.clone();
        let query = InternalQuery {
            text: IS_INITIAL,
            parameters: &[&path, task.role().as_str()],
            switch: task.switch,
            is_kept: false,
            deadline: task.deadline,
        };
        let mut is_initial = false;
        let mut take = |row: RawRow<'_>| {
            is_initial = row.values().next()?? == [1];
            Some(())
        };
        // PostgreSQL refuses this query only if it also refuses the caller's statement, so the
        // caller gets an error in any case.
        let succeeded = self.run_internal_query(&query, 1, &mut take).await?.is_ok();
        if self.session.prefix.is_refused() {
            // PostgreSQL refused the switch to the caller, so the query did not run. It will also
            // refuse the switch before the caller's statement.
            return Ok(false);
        }
        let is_initial = succeeded && is_initial;
        self.session.name_resolution = if is_initial {
            NameResolution::Initial
        } else {
            NameResolution::Changed
        };
        Ok(is_initial)
    }
}

/// Starts a DDL guard if the event trigger has reported a changed definition since the previous
/// call. The text of the statement may not show the change, because a function, a trigger or a view
/// may have made it.
pub(crate) fn take_reported_ddl(
    connection: &mut Connection,
    metadata: &MetadataCache,
) -> Option<DdlGuard> {
    let reported = connection.session.take_ddl();
    reported.then(|| DdlGuard::begin(&metadata.purity))
}
