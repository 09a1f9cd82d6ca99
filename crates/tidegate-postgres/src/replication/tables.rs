//! Who changes publications and tables, and the publications themselves.

use std::time::Duration;

use tidegate_sql::log::{LogError, LogResult};
use tidegate_sql::{DatabaseName, RoleName};
use tokio_postgres::Client;

use super::{EVERYTHING, INSERTS, Shared, refusal};
use crate::connection::{ConnectError, ConnectFault};
use crate::control;
use crate::pool::Key;

/// Serialises changes of the publications among the nodes.
const LOCK: &str = "SELECT pg_catalog.pg_advisory_xact_lock(7133, 1)";

/// Somebody as whom publications and tables can be changed: the owner of the database where its
/// login is held, or the administrator.
pub(super) struct Actor {
    pub(super) client: Client,
    lock_patience: Duration,
}

impl Actor {
    /// The owner of the database, if its login is held.
    pub(super) async fn owner(shared: &Shared, database: &DatabaseName) -> LogResult<Option<Self>> {
        let Some(owners) = &shared.owners else {
            return Ok(None);
        };
        let role = RoleName::new(database.as_str());
        let key = Key {
            database: database.clone(),
            role,
        };
        let Ok(credential) = owners.of(&key, false).await else {
            return Ok(None);
        };
        let config = shared.admin.clone();
        let config = config.with_login(database.as_str(), credential.password);
        match control::open(&config, database).await {
            Ok(client) => Ok(Some(Self::new(shared, client))),
            // An adopted database may belong to somebody who logs in elsewhere.
            Err(error) if error.fault() == ConnectFault::Login => Ok(None),
            Err(ConnectError::Refused(said)) if said.sqlstate == "42501" => Ok(None),
            Err(error) => Err(refusal::of_connection(error, database.as_str())),
        }
    }

    /// The administrator.
    pub(super) async fn admin(shared: &Shared, database: &DatabaseName) -> LogResult<Self> {
        let opened = control::open(&shared.admin, database).await;
        let role = &shared.admin.admin_role;
        let client = opened.map_err(|error| refusal::of_connection(error, role))?;
        Ok(Self::new(shared, client))
    }

    fn new(shared: &Shared, client: Client) -> Self {
        let lock_patience = shared.settings.lock_patience;
        Self {
            client,
            lock_patience,
        }
    }

    /// Opens a transaction in which nobody else changes the publications.
    pub(super) async fn begin(&self) -> LogResult<()> {
        // What is committed must be in the log at once, or a stream would never reach it.
        let patience = self.lock_patience.as_millis();
        self.run(&format!(
            "BEGIN; SET LOCAL lock_timeout = {patience}; \
             SELECT pg_catalog.set_config('synchronous_commit', 'local', true) \
             WHERE pg_catalog.current_setting('synchronous_commit') = 'off'; {LOCK}"
        ))
        .await
    }

    /// Commits, or rolls back what failed.
    pub(super) async fn end<T>(&self, done: LogResult<T>) -> LogResult<T> {
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.run(end).await;
        let done = done?;
        ended.map(|()| done)
    }

    /// Runs commands that return nothing of interest.
    pub(super) async fn run(&self, commands: &str) -> LogResult<()> {
        let done = self.client.batch_execute(commands).await;
        done.map_err(|error| refusal::of_statement(&error, self.lock_patience))
    }

    /// A query's rows.
    pub(super) async fn rows(
        &self,
        query: &str,
        values: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> LogResult<Vec<tokio_postgres::Row>> {
        let rows = self.client.query(query, values).await;
        rows.map_err(|error| refusal::of_statement(&error, self.lock_patience))
    }
}

/// Makes the publications where they are missing; says whether it did.
pub(super) async fn prepare(shared: &Shared, database: &DatabaseName) -> LogResult<bool> {
    let admin = Actor::admin(shared, database).await?;
    let state = State::read(&admin).await?;
    if state.wal_level != "logical" {
        return Err(LogError::NotAllowed {
            reason: format!("wal_level is {}", state.wal_level),
            remedy: "run ALTER SYSTEM SET wal_level = 'logical' and restart PostgreSQL".to_owned(),
        });
    }
    if state.missing.is_empty() {
        return Ok(false);
    }
    if let Some(owner) = Actor::owner(shared, database).await?
        && State::read(&owner).await?.may_create
    {
        return owner.publish().await;
    }
    if state.may_create {
        return admin.publish().await;
    }
    Err(LogError::NotAllowed {
        reason: format!("{} may not make a publication", shared.admin.admin_role),
        remedy: format!(
            "run GRANT CREATE ON DATABASE \"{database}\" TO \"{}\"",
            shared.admin.admin_role
        ),
    })
}

impl Actor {
    async fn publish(&self) -> LogResult<bool> {
        self.begin().await?;
        let done = async {
            let state = State::read(self).await?;
            for publication in &state.missing {
                let operations = match *publication {
                    INSERTS => "insert, truncate",
                    _ => "insert, update, delete, truncate",
                };
                self.run(&format!(
                    "CREATE PUBLICATION \"{publication}\" WITH (publish = '{operations}', \
                     publish_via_partition_root = true)"
                ))
                .await?;
            }
            Ok(!state.missing.is_empty())
        };
        let done = done.await;
        self.end(done).await
    }
}

/// Whether the database can be captured.
struct State {
    wal_level: String,
    may_create: bool,
    missing: Vec<&'static str>,
}

impl State {
    async fn read(actor: &Actor) -> LogResult<Self> {
        let rows = actor
            .rows(
                "SELECT pg_catalog.current_setting('wal_level'), \
                        pg_catalog.has_database_privilege(\
                            pg_catalog.current_database(), 'CREATE'), \
                        ARRAY(SELECT pubname::text FROM pg_catalog.pg_publication)",
                &[],
            )
            .await?;
        let row = rows.first().ok_or_else(|| super::unreadable("a setting"))?;
        let there: Vec<String> = row.get(2);
        let is_missing = |name: &&str| !there.iter().any(|there| there == name);
        Ok(Self {
            wal_level: row.get(0),
            may_create: row.get(1),
            missing: [EVERYTHING, INSERTS]
                .into_iter()
                .filter(is_missing)
                .collect(),
        })
    }
}
