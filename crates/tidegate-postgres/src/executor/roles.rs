//! Statements of users.

use std::fmt;
use std::sync::Arc;

use tidegate_pool::{Lease, Pool};
use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{
    Author, Completion, DatabaseName, Description, Error, Executor, Login, Mode, QueryOptions,
    Result, RoleUse, Transaction,
};
use tidegate_wire::is_lock_table_full;
use tokio::time::{Instant, timeout_at};

use super::RoleConnector;
use super::beginning::Beginnings;
use super::route::{Authentication, Route, route};
use super::transaction::RoleTransaction;
use crate::connection::{Condition, Connection};
use crate::dictionary::{Dictionaries, Dictionary};
use crate::multiplex::Multiplexer;
use crate::session::task::{Place, RunError, Task};
use crate::suspects::Redefinition;

/// Runs statements on connections that logged in as the caller's role.
#[derive(Clone)]
pub struct Roles {
    pub(super) pool: Pool<RoleConnector>,
    dictionaries: Arc<Dictionaries>,
    pub(super) service: Option<Arc<dyn Executor>>,
    authentication: Option<Arc<dyn Authentication>>,
    pub(super) multiplexer: Arc<Multiplexer>,
}

impl fmt::Debug for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roles")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// What goes with a lent connection.
pub(super) struct Lent {
    pub(super) route: Route,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) deadline: Option<Instant>,
}

impl Lent {
    /// A statement in a transaction of its own.
    pub(super) fn task<'a>(&'a self, bound: &'a BoundStatement) -> Task<'a> {
        self.task_at(Place::Alone, bound)
    }

    /// A statement at a place.
    pub(super) fn task_at<'a>(&'a self, place: Place, bound: &'a BoundStatement) -> Task<'a> {
        Task {
            bound,
            login: &self.route.login,
            switch: self.route.switch(),
            dictionary: &self.dictionary,
            deadline: self.deadline,
            place,
        }
    }
}

impl Roles {
    /// Takes its connections from the pool.
    pub fn new(pool: Pool<RoleConnector>) -> Self {
        let multiplexer = Arc::new(Multiplexer::new(pool.settings().of_user()));
        Self {
            pool,
            dictionaries: Arc::default(),
            service: None,
            authentication: None,
            multiplexer,
        }
    }

    /// Asks the service, as [`tidegate_sql::Principal::Catalog`], behind which names a database
    /// keeps code of its own. Without it every read may lead to such code, and is followed by a
    /// reset.
    #[must_use]
    pub fn with_service(mut self, service: Arc<dyn Executor>) -> Self {
        self.service = Some(service);
        self
    }

    /// Runs what Tidegate and the tenants' owners wrote on connections that users share, as far as
    /// `authentication` allows it. Without it only the owner and the default user have such
    /// connections.
    #[must_use]
    pub fn with_authentication(mut self, authentication: Arc<dyn Authentication>) -> Self {
        self.authentication = Some(authentication);
        self
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<RoleConnector> {
        &self.pool
    }

    /// How many statements that may have changed a definition of the database have run here, by
    /// their kind or because the database told so.
    pub fn definitions(&self, database: &DatabaseName) -> u64 {
        self.dictionaries.of(database).generation()
    }

    /// Takes note that a definition of the database may have changed elsewhere.
    pub fn redefined(&self, database: &DatabaseName) {
        let dictionary = self.dictionaries.of(database);
        let redefinition = Redefinition::begin(&dictionary.belief);
        dictionary.forget();
        self.distrust(database);
        drop(redefinition);
    }

    /// Has it decided again which users may share connections.
    pub(super) fn distrust(&self, database: &DatabaseName) {
        if let Some(authentication) = &self.authentication {
            authentication.distrust(database);
        }
    }

    /// The databases in which statements have run here, and how many.
    pub fn databases(&self) -> Vec<(DatabaseName, u64)> {
        self.dictionaries.statements()
    }

    /// How many statements, and transactions of several, of the database have ended here.
    pub fn statements(&self, database: &DatabaseName) -> u64 {
        self.dictionaries.of(database).statements()
    }

    /// How many of them call, by their text, what may be a function of the database's own.
    pub fn calls(&self, database: &DatabaseName) -> u64 {
        self.dictionaries.of(database).calls()
    }

    /// How many requests were answered on multiplexed connections.
    pub fn shared_reads(&self) -> u64 {
        self.multiplexer.answered()
    }

    /// Closes the connections of roles that may not log in any more (`NOLOGIN`, `VALID UNTIL`,
    /// `CONNECT`), or whose sessions would begin with other settings (`ALTER ROLE … SET`): idle ones
    /// at once, the others when they come back. Looks as well whether users may still share
    /// connections. Call it every second at least.
    ///
    /// Gives `pg_current_snapshot()`, which is the same as long as nothing in any database of the
    /// cluster has changed; nothing without a service.
    ///
    /// # Errors
    ///
    /// Those of the service.
    pub async fn check_logins(&self) -> Result<String> {
        if let Some(authentication) = &self.authentication {
            authentication.refresh().await?;
        }
        match &self.service {
            Some(service) => {
                let logins = self.pool.connector().logins();
                logins.compare(&**service, &self.pool).await
            }
            None => Ok(String::new()),
        }
    }

    /// Forgets a database that is dropped and closes its connections.
    pub fn forget(&self, database: &DatabaseName) {
        self.dictionaries.remove(database);
        if let Some(authentication) = &self.authentication {
            authentication.forget(database);
        }
        self.pool.close(database);
    }

    /// On which connections statements run, all of them on one.
    pub(super) async fn route(
        &self,
        login: &Login,
        author: Author,
        statements: &[&BoundStatement],
    ) -> Route {
        let authentication = self.authentication.as_ref();
        let author = match author {
            Author::Owner if !self.may_call(login, statements).await => Author::Caller,
            author => author,
        };
        route(authentication, login, (author, statements)).await
    }

    /// Whether the functions that the owner's statements call may be given values of a caller on a
    /// connection that users share.
    async fn may_call(&self, login: &Login, statements: &[&BoundStatement]) -> bool {
        let called = statements.iter().map(|bound| &bound.statement);
        let called: Vec<_> = called.filter(|statement| !statement.is_plain()).collect();
        if called.is_empty() {
            return true;
        }
        let Some(service) = &self.service else {
            return false;
        };
        let dictionary = self.dictionaries.of(&login.database);
        let belief = &dictionary.belief;
        for statement in called {
            let database = &login.database;
            if !belief.may_call(statement, service, database).await {
                return false;
            }
        }
        true
    }

    /// Takes note that an authenticator could not act as a user.
    pub(super) fn refused(&self, login: &Login, error: &Error) {
        tracing::debug!(role = %login.role, %error, "shared connection refused the role");
        self.distrust(&login.database);
    }

    /// What is known of the login's database; what is believed of it is renewed when that is due.
    pub(super) fn dictionary(&self, login: &Login) -> Arc<Dictionary> {
        let dictionary = self.dictionaries.of(&login.database);
        if let Some(service) = &self.service {
            dictionary.belief.refresh(service, &login.database);
        }
        dictionary
    }

    /// Opens a transaction; `BEGIN` travels with its first statement. Its statements are not known
    /// yet, so it runs on a connection that users share only for statements of Tidegate's.
    pub async fn begin(
        &self,
        login: &Login,
        mode: Mode,
        options: &QueryOptions,
    ) -> Result<Box<dyn Transaction>> {
        let route = match options.author {
            Author::Service => self.route(login, options.author, &[]).await,
            Author::Owner | Author::Caller => Route::own(login),
        };
        let lent = match self.lend(route, options).await {
            Err(RunError::RoleRefused(error)) => {
                self.refused(login, &error);
                self.lend(Route::own(login), options).await
            }
            lent => lent,
        };
        let lent = lent.map_err(RunError::into_error)?;
        let transaction = RoleTransaction::new(self.clone(), login.clone(), lent, mode);
        Ok(Box::new(transaction))
    }

    /// Describes a statement; see [`tidegate_sql::Executor::describe`].
    pub async fn describe(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
    ) -> Result<Description> {
        check(login, bound)?;
        let lent = self.lend(Route::own(login), options).await;
        let (mut lease, lent) = lent.map_err(RunError::into_error)?;
        let outcome = lease.describe_only(&lent.task(bound)).await;
        conclude(lease, outcome.map_err(RunError::into_error)).await
    }

    pub(super) fn beginnings(&self) -> Beginnings {
        Beginnings {
            pool: self.pool.clone(),
            service: self.service.clone(),
        }
    }

    pub(super) async fn lend(
        &self,
        route: Route,
        options: &QueryOptions,
    ) -> Result<(Lease<RoleConnector>, Lent), RunError> {
        let deadline = options.deadline.map(Instant::from_std);
        let lease = self.lease(&route.login, deadline).await;
        let lease = lease.map_err(|error| match error {
            // The authenticator is gone, locked, or has another password.
            Error::Rejected(_) | Error::Unavailable { .. } if route.switch().is_some() => {
                RunError::RoleRefused(error)
            }
            error => RunError::Failed(error),
        })?;
        let lent = Lent {
            dictionary: self.dictionary(&route.login),
            route,
            deadline,
        };
        Ok((lease, lent))
    }

    /// A connection in its initial state.
    pub(super) async fn lease(
        &self,
        login: &Login,
        deadline: Option<Instant>,
    ) -> Result<Lease<RoleConnector>> {
        loop {
            let acquired = self.pool.acquire(login);
            let mut lease = match deadline {
                None => acquired.await?,
                Some(deadline) => timeout_at(deadline, acquired)
                    .await
                    .unwrap_or(Err(Error::Deadline))?,
            };
            if lease.session_changed() {
                lease.change_session();
            }
            if lease.condition() == Condition::Ready {
                return Ok(lease);
            }
            let terminator = self.pool.connector().terminator();
            if Box::pin(lease.settle(&**terminator)).await && lease.is_open() {
                return Ok(lease);
            }
            lease.discard();
        }
    }
}

/// Refuses what a role with several users may not run.
pub(super) fn check(login: &Login, bound: &BoundStatement) -> Result<()> {
    match login.role_use {
        RoleUse::Anonymous => Ok(bound.statement.check_for_shared_role()?),
        RoleUse::User(_) | RoleUse::Trusted { .. } => Ok(()),
    }
}

/// Forgets what is known of types when a value was not of its type: the type has changed, and the
/// notice of that is still to come.
pub(super) fn forget_if_malformed(dictionary: &Dictionary, outcome: &Result<Completion>) {
    if outcome.as_ref().is_err_and(Error::is_malformed_value) {
        dictionary.forget();
    }
}

/// Marks a statement that may change a definition by its kind, while it runs.
pub(super) fn redefinition(
    dictionary: &Dictionary,
    bound: &BoundStatement,
) -> Option<Redefinition> {
    let redefines = matches!(bound.statement.kind(), Kind::Other | Kind::Procedural);
    redefines.then(|| Redefinition::begin(&dictionary.belief))
}

/// Marks a definition of which only the database could tell: by a function, a trigger, a view.
pub(crate) fn told(connection: &mut Connection, dictionary: &Dictionary) -> Option<Redefinition> {
    let told = connection.session.take_redefinition();
    told.then(|| Redefinition::begin(&dictionary.belief))
}

/// Gives the connection back. After a passed deadline the answer waits until nothing runs any
/// more, which takes a second at most.
pub(super) async fn conclude<T>(mut lease: Lease<RoleConnector>, outcome: Result<T>) -> Result<T> {
    if outcome.as_ref().is_err_and(is_lock_table_full) {
        lease.connector().terminator().lock_table_is_full();
    }
    if matches!(outcome, Err(Error::Deadline)) {
        let settled = tokio::spawn(async move {
            let terminator = lease.connector().terminator().clone();
            Box::pin(lease.settle(&*terminator)).await;
        });
        if let Err(error) = settled.await {
            return Err(Error::internal(error));
        }
    }
    outcome
}
