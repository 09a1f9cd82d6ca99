//! Transactions of users.

use std::sync::Arc;

use tidegate_pool::PooledConnection;
use tidegate_sql::{
    Author, BoundStatement, BoxFuture, Completion, DatabaseError, DatabaseName, Description, Error,
    Login, Mode, QueryOptions, Result, RowSink, Transaction,
};
use tokio::time::Instant;

use super::may_change_role_defaults;
use super::member_route::claims_error;
use super::route::{CheckedOut, check_author};
use super::user_executor::{
    UserExecutor, check, ddl_guard, forget_if_malformed, return_connection,
};
use crate::connector::RoleConnector;
use crate::metadata::MetadataCache;
use crate::purity::DdlGuard;
use crate::session::take_reported_ddl;
use crate::statement::{RunError, StatementTask, TransactionPosition};

/// An open transaction. Dropping it returns the connection to the pool, which rolls the transaction
/// back.
pub(super) struct RoleTransaction {
    users: UserExecutor,
    pooled: PooledConnection<RoleConnector>,
    /// The caller.
    login: Login,
    checked_out: CheckedOut,
    mode: Mode,
    phase: Phase,
    /// Set once a statement of the transaction may have changed a definition.
    ddl_guard: Option<DdlInTransaction>,
    /// Whether the text of a statement of the transaction calls a function that may be
    /// user-defined.
    called: bool,
    /// Whether a statement may have changed role defaults.
    changes_role_defaults: bool,
}

/// The state of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No statement, and therefore no `BEGIN`, has been sent.
    New,
    Open,
    /// A statement has failed, so the transaction can only be rolled back.
    Failed,
}

/// Guards definitions that a transaction may have changed. It is dropped when the transaction ends,
/// and then clears the metadata cache, because after a rollback the cached types may not exist.
struct DdlInTransaction {
    users: UserExecutor,
    database: DatabaseName,
    metadata: Arc<MetadataCache>,
    _guard: DdlGuard,
}

impl Drop for DdlInTransaction {
    fn drop(&mut self) {
        self.metadata.forget();
        self.users.invalidate(&self.database);
    }
}

impl UserExecutor {
    /// Opens a transaction. `BEGIN` is sent with the first statement. The statements are not known
    /// yet, so the transaction runs on a shared connection only if their author is Tidegate.
    pub async fn begin(
        &self,
        login: &Login,
        mode: Mode,
        options: &QueryOptions,
    ) -> Result<Box<dyn Transaction>> {
        check_author(login, options.author)?;
        let route = match options.author {
            Author::Service => self.route(login, options.author, &[]).await?,
            Author::Owner | Author::Caller => self.own_route(login).await?,
        };
        let sealed = route.sealed();
        let checked_out = match self.check_out(route, options).await {
            Err(RunError::RoleRefused(error)) => {
                let route = self.route_again(login, sealed, &error).await?;
                self.check_out(route, options).await
            }
            checked_out => checked_out,
        };
        let (pooled, checked_out) = checked_out.map_err(RunError::into_error)?;
        let (users, login) = (self.clone(), login.clone());
        let transaction = RoleTransaction::new(users, login, pooled, checked_out, mode);
        Ok(Box::new(transaction))
    }
}

impl RoleTransaction {
    pub(super) fn new(
        users: UserExecutor,
        login: Login,
        pooled: PooledConnection<RoleConnector>,
        checked_out: CheckedOut,
        mode: Mode,
    ) -> Self {
        Self {
            users,
            pooled,
            login,
            checked_out,
            mode,
            phase: Phase::New,
            ddl_guard: None,
            called: false,
            changes_role_defaults: false,
        }
    }

    /// Refuses statements after an error, as PostgreSQL does (25P02).
    fn check(&self) -> Result<()> {
        if self.phase == Phase::Failed {
            return Err(Error::Rejected(Box::new(DatabaseError {
                sqlstate: "25P02".to_owned(),
                message: "the transaction has failed before".to_owned(),
                ..DatabaseError::default()
            })));
        }
        Ok(())
    }

    fn position(&mut self) -> TransactionPosition {
        let position = if self.phase == Phase::Open {
            TransactionPosition::Within
        } else {
            TransactionPosition::First(self.mode)
        };
        self.phase = Phase::Open;
        position
    }

    /// Marks the transaction as failed after an error. PostgreSQL does not know errors that the
    /// service itself has found, such as an invalid value. After such an error it would run further
    /// statements.
    fn note_failure<T>(&mut self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.phase = Phase::Failed;
        }
        outcome
    }

    /// Makes the task of the next statement, and returns it with the transaction's connection.
    /// Fails if an earlier statement has failed.
    fn task<'a>(
        &'a mut self,
        bound: &'a BoundStatement,
    ) -> Result<(&'a mut PooledConnection<RoleConnector>, StatementTask<'a>)> {
        self.check()?;
        check(&self.login, bound)?;
        let position = self.position();
        Ok((&mut self.pooled, self.checked_out.task_at(position, bound)))
    }

    async fn run(&mut self, bound: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
        self.called |= bound.statement.calls();
        self.changes_role_defaults |= may_change_role_defaults(bound);
        let ddl_guard = ddl_guard(&self.checked_out.metadata, bound);
        let (pooled, task) = self.task(bound)?;
        let mut outcome = pooled.run(&task, sink).await;
        if let Err(RunError::RoleRefused(error)) = outcome {
            outcome = match self.start_over(&error).await {
                Ok(()) => {
                    let (pooled, task) = self.task(bound)?;
                    pooled.run(&task, sink).await
                }
                Err(error) => Err(error.into()),
            };
        }
        let outcome = outcome.map_err(|error| claims_error(&self.login, error.into_error()));
        let (pooled, metadata) = (&mut self.pooled, &self.checked_out.metadata);
        if let Some(ddl_guard) = ddl_guard.or(take_reported_ddl(pooled, metadata)) {
            metadata.forget();
            pooled.session.statements.retire();
            self.guard_until_end(ddl_guard);
        }
        forget_if_malformed(&self.checked_out.metadata, &outcome);
        self.note_failure(outcome)
    }

    /// Starts the transaction again. Call it if the first statement failed because PostgreSQL
    /// refused to switch to the caller's role, or refused the sealed claims of a member. For a
    /// member, the second attempt uses the same connection with the current key. For other callers,
    /// it uses a connection that logs in as the caller.
    async fn start_over(&mut self, error: &Error) -> Result<()> {
        let sealed = self.checked_out.route.sealed();
        let is_member = sealed.is_some();
        let route = self.users.route_again(&self.login, sealed, error).await?;
        self.phase = Phase::New;
        if is_member {
            self.pooled.rewind(self.checked_out.deadline).await?;
            self.checked_out.route = route;
            return Ok(());
        }
        let options = QueryOptions {
            deadline: self.checked_out.deadline.map(Instant::into_std),
            ..QueryOptions::default()
        };
        let checked_out = self.users.check_out(route, &options).await;
        (self.pooled, self.checked_out) = checked_out.map_err(RunError::into_error)?;
        Ok(())
    }

    /// Keeps the guard until the transaction ends.
    fn guard_until_end(&mut self, ddl_guard: DdlGuard) {
        self.ddl_guard = Some(DdlInTransaction {
            users: self.users.clone(),
            database: self.login.database.clone(),
            metadata: self.checked_out.metadata.clone(),
            _guard: ddl_guard,
        });
    }

    async fn describe_statement(&mut self, bound: &BoundStatement) -> Result<Description> {
        let (pooled, task) = self.task(bound)?;
        let outcome = pooled.describe_only(&task).await;
        self.note_failure(outcome.map_err(RunError::into_error))
    }

    async fn commit_and_return(mut self) -> Result<()> {
        self.check()?;
        if self.phase == Phase::New {
            return Ok(());
        }
        let outcome = self.pooled.commit(self.checked_out.deadline).await;
        // COMMIT runs deferred triggers, which may change definitions. Therefore the reports of the
        // event trigger are read again after COMMIT.
        let deferred = take_reported_ddl(&mut self.pooled, &self.checked_out.metadata);
        if let Some(deferred) = deferred {
            self.guard_until_end(deferred);
        }
        self.ddl_guard = None;
        self.checked_out.metadata.count(self.called);
        if outcome.is_ok() && self.changes_role_defaults {
            self.users.role_defaults().check(&self.login).await;
        }
        let outcome = outcome.map_err(|error| claims_error(&self.login, error));
        if outcome.is_ok() {
            self.users.release(self.pooled, &self.checked_out);
            return outcome;
        }
        return_connection(self.pooled, outcome).await
    }
}

impl Transaction for RoleTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(self.run(statement, sink))
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(self.describe_statement(statement))
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.commit_and_return())
    }
}
