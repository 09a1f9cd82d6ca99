//! Runs statements of users.

use std::fmt;
use std::sync::Arc;

use tidegate_pool::{Pool, PooledConnection};
use tidegate_sql::statement::{BoundStatement, Kind};
use tidegate_sql::{
    Author, Completion, DatabaseName, Description, Error, Executor, Login, LoginRefused,
    QueryOptions, Result, RoleUse, SharedBy,
};
use tidegate_wire::is_lock_table_full;
use tokio::time::{Instant, timeout_at};

use super::caller_limit::{CallerLimit, WaitLimit};
use super::claims_key_cache::ClaimsKeyCache;
use super::role_defaults::RoleDefaults;
use super::route::{Authentication, CheckedOut, Route, check_author, may_share, route};
use crate::claims_key::ClaimsKey;
use crate::connection::ConnectionState;
use crate::connector::RoleConnector;
use crate::metadata::{MetadataCache, MetadataCaches};
use crate::multiplex::Multiplexer;
use crate::purity::DdlGuard;
use crate::statement::RunError;

/// Runs statements of users, each as the caller's role.
#[derive(Clone)]
pub struct UserExecutor {
    pub(super) pool: Pool<RoleConnector>,
    caches: Arc<MetadataCaches>,
    pub(super) service: Option<Arc<dyn Executor>>,
    pub(super) authentication: Option<Arc<dyn Authentication>>,
    pub(super) claims: Option<Arc<ClaimsKeyCache>>,
    pub(super) multiplexer: Arc<Multiplexer>,
    pub(super) callers: Arc<CallerLimit>,
}

impl fmt::Debug for UserExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserExecutor")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl UserExecutor {
    /// An executor that uses the connections of `pool`.
    pub fn new(pool: Pool<RoleConnector>) -> Self {
        let multiplexer = Arc::new(Multiplexer::new(pool.settings().of_user()));
        let callers = Arc::new(CallerLimit::new(pool.settings()));
        Self {
            pool,
            caches: Arc::default(),
            service: None,
            authentication: None,
            claims: None,
            multiplexer,
            callers,
        }
    }

    /// Sets the executor that runs the service's own queries, as
    /// [`tidegate_sql::Principal::Control`] and [`tidegate_sql::Principal::Catalog`]. Without this
    /// executor, every read counts as impure and is followed by a reset, no statement is
    /// multiplexed, statements of members fail, and changes of roles do not close connections.
    #[must_use]
    pub fn with_service(mut self, service: Arc<dyn Executor>) -> Self {
        self.service = Some(service);
        self
    }

    /// Sets `authentication`, which decides about shared connections for statements that Tidegate
    /// or tenants' owners wrote. Without it, only the owner, the default user and members have
    /// shared connections.
    #[must_use]
    pub fn with_authentication(mut self, authentication: Arc<dyn Authentication>) -> Self {
        self.authentication = Some(authentication);
        self
    }

    /// Allows statements of members. `derive` computes the key of a database for the generation
    /// that the functions of the database use ([`crate::CLAIMS_GENERATION`]). Without `derive`,
    /// statements of members fail.
    #[must_use]
    pub fn with_claims_keys(
        mut self,
        derive: impl Fn(&DatabaseName, i32) -> ClaimsKey + Send + Sync + 'static,
    ) -> Self {
        self.claims = Some(Arc::new(ClaimsKeyCache::new(Box::new(derive))));
        self
    }

    /// The pool of users' connections.
    pub fn pool(&self) -> &Pool<RoleConnector> {
        &self.pool
    }

    /// A number that increases whenever a definition of the database may have changed. It increases
    /// after a statement of this node that may have changed a definition, according to the kind of
    /// the statement or to a report of the event trigger. It also increases when
    /// [`Self::redefined`] is called, and when cached data turns out to be stale.
    pub fn definitions(&self, database: &DatabaseName) -> u64 {
        self.caches.of(database).generation()
    }

    /// Clears the metadata cache and invalidates the decision about shared connections, because a
    /// definition of the database may have changed outside of this node.
    pub fn redefined(&self, database: &DatabaseName) {
        let metadata = self.caches.of(database);
        let ddl_guard = DdlGuard::begin(&metadata.purity);
        metadata.forget();
        self.invalidate(database);
        drop(ddl_guard);
    }

    /// Invalidates the decision whether users may share connections; see
    /// [`Authentication::invalidate`].
    pub(super) fn invalidate(&self, database: &DatabaseName) {
        if let Some(authentication) = &self.authentication {
            authentication.invalidate(database);
        }
    }

    /// The databases in which statements have run on this node, each with the number that
    /// [`Self::statements`] returns.
    pub fn databases(&self) -> Vec<(DatabaseName, u64)> {
        self.caches.statements()
    }

    /// How many statements, pipelines and transactions have run in the database on this node. A
    /// pipeline or a transaction counts once. A pipeline that PostgreSQL rolled back does not
    /// count, and neither does a transaction without COMMIT.
    pub fn statements(&self, database: &DatabaseName) -> u64 {
        self.caches.of(database).statements()
    }

    /// How many of the statements that [`Self::statements`] counts may call a user-defined
    /// function.
    pub fn calls(&self, database: &DatabaseName) -> u64 {
        self.caches.of(database).calls()
    }

    /// How many requests got their rows from a multiplexed connection.
    pub fn multiplexed_requests(&self) -> u64 {
        self.multiplexer.delivered()
    }

    /// Removes the cached data of a database that is being dropped, and closes its connections.
    pub fn forget(&self, database: &DatabaseName) {
        self.caches.remove(database);
        if let Some(authentication) = &self.authentication {
            authentication.forget(database);
        }
        if let Some(claims) = &self.claims {
            claims.forget(database);
        }
        self.pool.close(database);
    }

    /// Chooses the kind of connection for statements that run together.
    pub(super) async fn route(
        &self,
        login: &Login,
        author: Author,
        statements: &[&BoundStatement],
    ) -> Result<Route> {
        check_author(login, author)?;
        let authentication = self.authentication.as_ref();
        let author = match author {
            Author::Owner if !self.calls_are_safe(login, statements).await => Author::Caller,
            author => author,
        };
        if let RoleUse::Member(member) = &login.role_use {
            let shares = statements.iter().all(|bound| may_share(author, bound));
            return self.member_route(login, member, shares).await;
        }
        Ok(route(authentication, login, author, statements).await)
    }

    /// Whether these statements of the tenant's owner may run on a shared connection with parameter
    /// values of callers. The result is `true` if every function in the statements is safe for such
    /// values. Without an executor for the service's own queries, no function counts as safe.
    async fn calls_are_safe(&self, login: &Login, statements: &[&BoundStatement]) -> bool {
        let called = statements.iter().map(|bound| &bound.statement);
        let called: Vec<_> = called.filter(|statement| !statement.is_plain()).collect();
        if called.is_empty() {
            return true;
        }
        let Some(service) = &self.service else {
            return false;
        };
        let metadata = self.caches.of(&login.database);
        let purity = &metadata.purity;
        for statement in called {
            let database = &login.database;
            if !purity.calls_are_safe(statement, service, database).await {
                return false;
            }
        }
        true
    }

    /// Invalidates the decision about shared connections, because a shared connection could not
    /// switch to the user's role.
    pub(super) fn refused(&self, login: &Login, error: &Error) {
        tracing::debug!(role = %login.role, %error, "shared connection refused the role");
        self.invalidate(&login.database);
    }

    /// Reports an authenticator whose login failed, unless PostgreSQL is unavailable.
    fn login_refused(&self, login: &Login, error: &Error) {
        let refused = match error {
            Error::Unavailable { source, .. } => {
                let source = source.as_deref();
                source.is_some_and(<dyn std::error::Error + Send + Sync>::is::<LoginRefused>)
            }
            _ => true,
        };
        if let Some(authentication) = self.authentication.as_ref().filter(|_| refused) {
            authentication.login_refused(&login.database, &login.role);
        }
    }

    pub(super) fn metadata(&self, login: &Login) -> Arc<MetadataCache> {
        self.caches.of(&login.database)
    }

    /// Returns a connection to the pool after its statement or transaction has ended. If the
    /// untrusted names of the database have to be read again, a background task reads their
    /// fingerprint on this connection before it returns the connection. This connection is open
    /// already, whereas the service might first have to log in to the database.
    pub(super) fn release(
        &self,
        mut pooled: PooledConnection<RoleConnector>,
        checked_out: &CheckedOut,
    ) {
        let (Some(service), Some(refresh)) = (&self.service, checked_out.metadata.purity.count())
        else {
            return;
        };
        let login = &checked_out.route.login;
        // The fingerprint query stays prepared only on shared connections that members do not use.
        // On a connection of members, code that runs for a member could replace the prepared query.
        let may_keep = matches!(login.role_use, RoleUse::Trusted(by) if by != SharedBy::Members);
        let (service, database) = (service.clone(), login.database.clone());
        let read = async move |deadline| {
            let terminator = pooled.connector().terminator().clone();
            if !pooled.recover(&*terminator).await {
                return Err(Error::internal("the connection could not be reset"));
            }
            pooled.fingerprint(may_keep, deadline).await
        };
        tokio::spawn(refresh.run(read, service, database));
    }

    /// Describes a statement; see [`tidegate_sql::Executor::describe`].
    pub async fn describe(
        &self,
        login: &Login,
        bound: &BoundStatement,
        options: &QueryOptions,
    ) -> Result<Description> {
        check(login, bound)?;
        check_author(login, options.author)?;
        let checked_out = self.check_out(self.own_route(login).await?, options).await;
        let (mut pooled, checked_out) = checked_out.map_err(RunError::into_error)?;
        let outcome = pooled.describe_only(&checked_out.task(bound)).await;
        return_connection(pooled, outcome.map_err(RunError::into_error)).await
    }

    pub(super) fn role_defaults(&self) -> RoleDefaults {
        RoleDefaults {
            pool: self.pool.clone(),
            service: self.service.clone(),
        }
    }

    pub(super) async fn check_out(
        &self,
        route: Route,
        options: &QueryOptions,
    ) -> Result<(PooledConnection<RoleConnector>, CheckedOut), RunError> {
        let deadline = options.deadline.map(Instant::from_std);
        let wait = self.wait_limit(deadline);
        let permit = match route.caller(options.limit) {
            Some(caller) => Some(self.callers.acquire(caller, wait).await?),
            None => None,
        };
        let pooled = self.acquire(&route.login, wait).await;
        let pooled = pooled.map_err(|error| match error {
            // Perhaps the authenticator does not exist, is locked, or has another password. The
            // user's own login is tried instead.
            Error::Rejected(_) | Error::Unavailable { .. } if route.is_authenticator() => {
                self.login_refused(&route.login, &error);
                RunError::RoleRefused(error)
            }
            error => RunError::Failed(error),
        })?;
        let checked_out = CheckedOut {
            metadata: self.metadata(&route.login),
            route,
            deadline,
            permit,
        };
        Ok((pooled, checked_out))
    }

    /// The limits on the wait for a connection, for a request whose wait begins now.
    pub(super) fn wait_limit(&self, deadline: Option<Instant>) -> WaitLimit {
        WaitLimit::new(self.pool.settings(), deadline)
    }

    /// Checks out a connection whose session is in its initial state.
    pub(super) async fn acquire(
        &self,
        login: &Login,
        wait: WaitLimit,
    ) -> Result<PooledConnection<RoleConnector>> {
        loop {
            let acquired = self.pool.acquire_until(login, wait.until);
            let mut pooled = match wait.deadline {
                None => acquired.await?,
                Some(deadline) => timeout_at(deadline, acquired)
                    .await
                    .unwrap_or(Err(Error::Deadline))?,
            };
            // Temporary tables and settings of the previous OAuth session must not be visible to
            // the next one.
            if pooled.session_changed() {
                pooled.change_session();
            }
            pooled.request_periodic_reset_if_due();
            if pooled.state() == ConnectionState::Idle {
                return Ok(pooled);
            }
            // The pool also hands out connections whose reset was sent but has no response yet, so
            // recovery may have to wait for the response.
            let terminator = self.pool.connector().terminator();
            if Box::pin(pooled.recover(&**terminator)).await && pooled.is_open() {
                return Ok(pooled);
            }
            pooled.discard();
        }
    }
}

/// Refuses statements that must not run as a role that anonymous callers or members share.
pub(super) fn check(login: &Login, bound: &BoundStatement) -> Result<()> {
    match login.role_use {
        RoleUse::Anonymous | RoleUse::Member(_) => Ok(bound.statement.check_for_shared_role()?),
        RoleUse::User(_) | RoleUse::Trusted(_) => Ok(()),
    }
}

/// Clears the metadata cache if PostgreSQL sent a value that does not match the cached type. The
/// type has changed, and the notification of this change has not arrived yet.
pub(super) fn forget_if_malformed(metadata: &MetadataCache, outcome: &Result<Completion>) {
    if outcome.as_ref().is_err_and(Error::is_malformed_value) {
        metadata.forget();
    }
}

/// Starts a DDL guard if the kind of the statement shows that it may change a definition.
pub(super) fn ddl_guard(metadata: &MetadataCache, bound: &BoundStatement) -> Option<DdlGuard> {
    let may_change = matches!(bound.statement.kind(), Kind::Other | Kind::Procedural);
    may_change.then(|| DdlGuard::begin(&metadata.purity))
}

/// Returns the connection to the pool. If the deadline has passed, first recovers the connection:
/// cancels the statement, waits for its end, and resets the session. Reports a full lock table to
/// the terminator.
pub(super) async fn return_connection<T>(
    mut pooled: PooledConnection<RoleConnector>,
    outcome: Result<T>,
) -> Result<T> {
    if outcome.as_ref().is_err_and(is_lock_table_full) {
        pooled.connector().terminator().lock_table_is_full();
    }
    if matches!(outcome, Err(Error::Deadline)) {
        let recovered = tokio::spawn(async move {
            let terminator = pooled.connector().terminator().clone();
            Box::pin(pooled.recover(&*terminator)).await;
        });
        if let Err(error) = recovered.await {
            return Err(Error::internal(error));
        }
    }
    outcome
}
