//! Sessions of a database's owner or of the administrator, in which captures are changed.

use std::sync::Arc;
use std::time::Duration;

use tidegate_changelog::LogResult;
use tidegate_pool::PoolKey;
use tidegate_postgres::Credentials;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::{Config, ConnectError, ConnectFault};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tracing::debug;

use crate::error;

/// The logins that change captures in databases.
pub(crate) struct Logins {
    /// The cluster, with the administrator's login.
    pub(crate) admin: Config,
    /// The credentials of the databases' owners, who own most tables. Without them, the
    /// administrator changes all captures.
    pub(crate) owners: Option<Arc<dyn Credentials>>,
    /// The longest wait for one lock, on a table or in the control database.
    pub(crate) lock_timeout: Duration,
}

/// Takes the lock of the database `$1`, so that only one node at a time changes its captures. It is
/// an advisory lock in the control database, to which no tenant may log in. In the tenant's own
/// database, any user could take such a lock and keep it forever.
const LOCK: &str = "\
    SELECT pg_catalog.pg_advisory_lock((7133::bigint << 32) | d.oid::bigint) \
    FROM pg_catalog.pg_database d WHERE d.datname = $1::text";

/// Releases the lock that [`LOCK`] took, which is the only advisory lock of its session.
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()";

/// A session that can change tables and their captures. It belongs to the owner of the database or
/// to the administrator.
pub(crate) struct CaptureSession {
    pub(crate) client: Client,
    lock_timeout: Duration,
    database: DatabaseName,
    /// The administrator's login, for the session that holds the lock.
    admin: Config,
    /// The session in the control database that holds the lock of [`LOCK`]. It is opened when the
    /// lock is first needed.
    lock_session: OnceCell<Client>,
}

impl CaptureSession {
    /// Opens a session of the database's owner. Returns `None` if the owner's credential is not
    /// known, or if the login is refused.
    pub(crate) async fn owner(logins: &Logins, database: &DatabaseName) -> LogResult<Option<Self>> {
        let Some(owners) = &logins.owners else {
            return Ok(None);
        };
        let role = RoleName::new(database.as_str());
        let key = PoolKey {
            database: database.clone(),
            role,
            trusted: false,
        };
        let Ok(credential) = owners.of(&key, false).await else {
            return Ok(None);
        };
        let config = logins.admin.clone();
        let config = config.with_login(database.as_str(), credential.password);
        match tidegate_service::open(&config, database).await {
            Ok(client) => Ok(Some(Self::new(logins, database, client))),
            // The database may be an adopted one whose owner's login Tidegate does not manage. Then
            // the administrator changes the captures.
            Err(error)
                if matches!(
                    error.fault(),
                    ConnectFault::Login | ConnectFault::AccessDenied
                ) =>
            {
                Ok(None)
            }
            Err(ConnectError::Refused(said)) if said.sqlstate == "42501" => Ok(None),
            Err(error) => Err(error::of_connection(error, database.as_str())),
        }
    }

    /// Opens a session of the administrator.
    pub(crate) async fn admin(logins: &Logins, database: &DatabaseName) -> LogResult<Self> {
        let opened = tidegate_service::open(&logins.admin, database).await;
        let role = &logins.admin.admin_role;
        let client = opened.map_err(|error| error::of_connection(error, role))?;
        Ok(Self::new(logins, database, client))
    }

    /// Opens a session of the administrator for reading changes. The session takes no permit of
    /// [`Config::sessions`], because it would hold the permit for a long time.
    pub(crate) async fn reader(logins: &Logins, database: &DatabaseName) -> LogResult<Self> {
        let opened = tidegate_service::open_stream(&logins.admin, database).await;
        let role = &logins.admin.admin_role;
        let client = opened.map_err(|error| error::of_connection(error, role))?;
        Ok(Self::new(logins, database, client))
    }

    fn new(logins: &Logins, database: &DatabaseName, client: Client) -> Self {
        Self {
            client,
            lock_timeout: logins.lock_timeout,
            database: database.clone(),
            admin: logins.admin.clone(),
            lock_session: OnceCell::new(),
        }
    }

    /// Takes the lock of the database (see [`LOCK`]) and opens a transaction. Until
    /// [`CaptureSession::end`], no other node changes captures of the database.
    pub(crate) async fn begin(&self) -> LogResult<()> {
        self.take_lock().await?;
        // A stream reaches only positions that are flushed. With `synchronous_commit = off`, the
        // commit of this transaction might be flushed late, and a stream would reach the position
        // of the commit late.
        let timeout = self.lock_timeout.as_millis();
        let begun = self
            .run(&format!(
                "BEGIN; SET LOCAL lock_timeout = {timeout}; \
                 SELECT pg_catalog.set_config('synchronous_commit', 'local', true) \
                 WHERE pg_catalog.current_setting('synchronous_commit') = 'off'"
            ))
            .await;
        if begun.is_err() {
            self.release_lock().await;
        }
        begun
    }

    /// Commits if `done` is a success, and rolls back otherwise. Releases the lock. Returns `done`,
    /// or the error of the commit.
    pub(crate) async fn end<T>(&self, done: LogResult<T>) -> LogResult<T> {
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.run(end).await;
        self.release_lock().await;
        let done = done?;
        ended.map(|()| done)
    }

    async fn take_lock(&self) -> LogResult<()> {
        let open = || async {
            let opened = tidegate_service::open(&self.admin, &self.admin.control_database).await;
            let client =
                opened.map_err(|error| error::of_connection(error, &self.admin.admin_role))?;
            let timeout = format!("SET lock_timeout = {}", self.lock_timeout.as_millis());
            let set = client.batch_execute(&timeout).await;
            set.map_err(|error| error::of_statement(&error, self.lock_timeout))?;
            Ok(client)
        };
        let lock_session = self.lock_session.get_or_try_init(open).await?;
        let taken = lock_session.execute(LOCK, &[&self.database.as_str()]).await;
        taken.map_err(|error| error::of_statement(&error, self.lock_timeout))?;
        Ok(())
    }

    /// Releases the lock of the database. Errors are ignored, because the lock ends with its
    /// session.
    async fn release_lock(&self) {
        if let Some(lock_session) = self.lock_session.get()
            && let Err(error) = lock_session.execute(UNLOCK, &[]).await
        {
            debug!(%error, "the lock of the control database was not released");
        }
    }

    /// Runs commands and ignores their results.
    pub(crate) async fn run(&self, commands: &str) -> LogResult<()> {
        let done = self.client.batch_execute(commands).await;
        done.map_err(|error| error::of_statement(&error, self.lock_timeout))
    }

    /// Runs a query.
    pub(crate) async fn rows(
        &self,
        query: &str,
        values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> LogResult<Vec<tokio_postgres::Row>> {
        let rows = self.client.query(query, values).await;
        rows.map_err(|error| error::of_statement(&error, self.lock_timeout))
    }
}
