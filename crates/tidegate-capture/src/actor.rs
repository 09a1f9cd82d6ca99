//! Who changes what is captured: the owner of a database, or the administrator.

use std::sync::Arc;
use std::time::Duration;

use tidegate_changelog::LogResult;
use tidegate_pool::Key;
use tidegate_postgres::Credentials;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_wire::{Config, ConnectError, ConnectFault};
use tokio::sync::OnceCell;
use tokio_postgres::Client;
use tracing::debug;

use crate::refusal;

/// The logins for what has to be changed in databases.
pub(crate) struct Logins {
    /// The cluster with the administrator's login.
    pub(crate) admin: Config,
    /// The logins of the databases' owners, which own most tables.
    pub(crate) owners: Option<Arc<dyn Credentials>>,
    /// How long a lock on a table may be waited for.
    pub(crate) lock_patience: Duration,
}

/// Serialises changes of what is captured in a database among the nodes. It is a lock of the
/// control database, where no tenant may log in: an advisory lock in the tenant's own database
/// could be held by any of its users for as long as that user likes.
const LOCK: &str = "\
    SELECT pg_catalog.pg_advisory_lock((7133::bigint << 32) | d.oid::bigint) \
    FROM pg_catalog.pg_database d WHERE d.datname = $1::text";

/// Gives the lock back. Nothing else is locked in the session.
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()";

/// Somebody as whom tables, and what captures them, can be changed: the owner of the database where its
/// login is held, or the administrator.
pub(crate) struct Actor {
    pub(crate) client: Client,
    lock_patience: Duration,
    database: DatabaseName,
    /// The administrator's login, for the session that holds the lock.
    admin: Config,
    /// That session, in the control database, once there is one.
    turn: OnceCell<Client>,
}

impl Actor {
    /// The owner of the database, if its login is held.
    pub(crate) async fn owner(logins: &Logins, database: &DatabaseName) -> LogResult<Option<Self>> {
        let Some(owners) = &logins.owners else {
            return Ok(None);
        };
        let role = RoleName::new(database.as_str());
        let key = Key {
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
            // An adopted database may belong to somebody who logs in elsewhere.
            Err(error) if matches!(error.fault(), ConnectFault::Login | ConnectFault::Barred) => {
                Ok(None)
            }
            Err(ConnectError::Refused(said)) if said.sqlstate == "42501" => Ok(None),
            Err(error) => Err(refusal::of_connection(error, database.as_str())),
        }
    }

    /// The administrator.
    pub(crate) async fn admin(logins: &Logins, database: &DatabaseName) -> LogResult<Self> {
        let opened = tidegate_service::open(&logins.admin, database).await;
        let role = &logins.admin.admin_role;
        let client = opened.map_err(|error| refusal::of_connection(error, role))?;
        Ok(Self::new(logins, database, client))
    }

    fn new(logins: &Logins, database: &DatabaseName, client: Client) -> Self {
        Self {
            client,
            lock_patience: logins.lock_patience,
            database: database.clone(),
            admin: logins.admin.clone(),
            turn: OnceCell::new(),
        }
    }

    /// Opens a transaction in which no other node changes what is captured.
    pub(crate) async fn begin(&self) -> LogResult<()> {
        self.take_turn().await?;
        // What is committed must be in the log at once, or a stream would never reach it.
        let patience = self.lock_patience.as_millis();
        let begun = self
            .run(&format!(
                "BEGIN; SET LOCAL lock_timeout = {patience}; \
                 SELECT pg_catalog.set_config('synchronous_commit', 'local', true) \
                 WHERE pg_catalog.current_setting('synchronous_commit') = 'off'"
            ))
            .await;
        if begun.is_err() {
            self.give_turn_back().await;
        }
        begun
    }

    /// Commits, or rolls back what failed.
    pub(crate) async fn end<T>(&self, done: LogResult<T>) -> LogResult<T> {
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.run(end).await;
        self.give_turn_back().await;
        let done = done?;
        ended.map(|()| done)
    }

    async fn take_turn(&self) -> LogResult<()> {
        let open = || async {
            let opened = tidegate_service::open(&self.admin, &self.admin.control_database).await;
            let client =
                opened.map_err(|error| refusal::of_connection(error, &self.admin.admin_role))?;
            let patience = format!("SET lock_timeout = {}", self.lock_patience.as_millis());
            let set = client.batch_execute(&patience).await;
            set.map_err(|error| refusal::of_statement(&error, self.lock_patience))?;
            Ok(client)
        };
        let turn = self.turn.get_or_try_init(open).await?;
        let taken = turn.execute(LOCK, &[&self.database.as_str()]).await;
        taken.map_err(|error| refusal::of_statement(&error, self.lock_patience))?;
        Ok(())
    }

    /// A session that does not answer has ended, or ends with the actor, and the lock with it.
    async fn give_turn_back(&self) {
        if let Some(turn) = self.turn.get()
            && let Err(error) = turn.execute(UNLOCK, &[]).await
        {
            debug!(%error, "the lock of the control database was not given back");
        }
    }

    /// Runs commands that return nothing of interest.
    pub(crate) async fn run(&self, commands: &str) -> LogResult<()> {
        let done = self.client.batch_execute(commands).await;
        done.map_err(|error| refusal::of_statement(&error, self.lock_patience))
    }

    /// A query's rows.
    pub(crate) async fn rows(
        &self,
        query: &str,
        values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> LogResult<Vec<tokio_postgres::Row>> {
        let rows = self.client.query(query, values).await;
        rows.map_err(|error| refusal::of_statement(&error, self.lock_patience))
    }
}
