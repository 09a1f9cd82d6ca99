//! A connection of the administrator to one database.

use std::time::Duration;

use tidegate_sql::DatabaseName;
use tidegate_wire::{Config, ConnectError, version};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::script::{Script, SqlPart};
use super::{Error, Result};

/// An advisory lock for an operation that only one node may run at a time.
pub(super) struct AdvisoryLock<'a> {
    /// The text whose hash is the key of the lock.
    pub(super) key: &'a str,
    /// The operation of the session that holds the lock, for the text of [`Error::Busy`].
    pub(super) others: &'static str,
    /// The longest wait for the lock.
    pub(super) timeout: Duration,
}

/// A connection, usually of the administrator, with attributes of the server and of the login.
pub(super) struct Session {
    pub(super) client: Client,
    /// The server's `server_version_num`.
    pub(super) version: u32,
    /// The role that has logged in.
    pub(super) role: String,
    /// Whether `role` is a superuser.
    pub(super) superuser: bool,
}

impl Session {
    /// Logs in with the login of `config`, usually that of the administrator.
    pub(super) async fn open(config: &Config, database: &str) -> Result<Self> {
        let opened = tidegate_service::open(config, &DatabaseName::new(database)).await;
        Self::of(opened.map_err(|source| refused(config, database, source))?).await
    }

    /// Logs in as a user whose role Tidegate created. `version` is `server_version_num`, or 0 if
    /// unknown.
    pub(super) async fn open_as_user(
        config: &Config,
        database: &str,
        version: u32,
    ) -> Result<Self> {
        let opened =
            tidegate_service::open_as_user(config, &DatabaseName::new(database), version).await;
        Self::of(opened.map_err(|source| refused(config, database, source))?).await
    }

    async fn of(client: Client) -> Result<Self> {
        let row = client
            .query_one(
                "SELECT pg_catalog.current_setting('server_version_num')::int4, \
                        r.rolname::text, r.rolsuper \
                 FROM pg_catalog.pg_roles r WHERE r.rolname = current_user",
                &[],
            )
            .await?;
        Ok(Self {
            version: row.get::<_, i32>(0).unsigned_abs(),
            role: row.get(1),
            superuser: row.get(2),
            client,
        })
    }

    /// Waits for an advisory lock, which the session then holds until it ends.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if the lock did not become free in time.
    pub(super) async fn lock(&self, lock: &AdvisoryLock<'_>) -> Result<()> {
        let timeout = lock.timeout.as_millis();
        let timeout = format!("SET lock_timeout = {timeout}; SET statement_timeout = 0");
        self.client.batch_execute(&timeout).await?;
        let statement = "SELECT pg_catalog.pg_advisory_lock(pg_catalog.hashtextextended($1, 0))";
        let locked = self.client.execute(statement, &[&lock.key]).await;
        locked.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => Error::Busy(lock.others),
            _ => error.into(),
        })?;
        let reset = "RESET lock_timeout; RESET statement_timeout";
        Ok(self.client.batch_execute(reset).await?)
    }

    /// Begins a transaction, which [`Self::end`] ends.
    pub(super) async fn begin(&self) -> Result<()> {
        Ok(self.client.batch_execute("BEGIN").await?)
    }

    /// Commits the transaction if `done` is `Ok`, and rolls back otherwise. Returns the error of
    /// `done`, or else the error of COMMIT.
    pub(super) async fn end(&self, done: Result<()>) -> Result<()> {
        let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = self.client.batch_execute(end).await;
        done?;
        Ok(ended?)
    }

    /// Whether the administrator has the privileges of `role`.
    pub(super) async fn has_privileges_of(&self, role: &str) -> Result<bool> {
        if self.superuser {
            return Ok(true);
        }
        let row = self
            .client
            .query_one(
                "SELECT pg_catalog.pg_has_role(current_user, $1::text::name, 'USAGE')",
                &[&role],
            )
            .await?;
        Ok(row.get(0))
    }

    /// Whether the administrator may switch to the role with `SET ROLE`.
    async fn may_set_role(&self, role: &str) -> Result<bool> {
        let query = "SELECT pg_catalog.pg_has_role(current_user, $1::text::name, $2::text)";
        let how = version::may_become(self.version);
        let row = self.client.query_one(query, &[&role, &how]).await?;
        Ok(row.get(0))
    }

    pub(super) async fn is_superuser(&self, role: &str) -> Result<bool> {
        let query = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = $1::text";
        let row = self.client.query_opt(query, &[&role]).await?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    /// The owner of the schema `public`; `None` if the database has no such schema.
    pub(super) async fn owner_of_public(&self) -> Result<Option<String>> {
        let row = self
            .client
            .query_opt(
                "SELECT pg_catalog.pg_get_userbyid(nspowner)::text \
                 FROM pg_catalog.pg_namespace WHERE nspname = 'public'",
                &[],
            )
            .await?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Wraps statements that need the privileges of `role`: the administrator becomes a member of
    /// `role` before `inner`, and the membership ends after `inner`. Returns `inner` unchanged if
    /// the administrator already has the privileges and may switch to `role`.
    pub(super) async fn with_privileges_of(&self, role: &str, inner: Script) -> Result<Script> {
        if self.has_privileges_of(role).await? && self.may_set_role(role).await? {
            return Ok(inner);
        }
        let mut script = Script::default();
        script.push(&[
            SqlPart::Syntax("GRANT "),
            SqlPart::Name(role),
            SqlPart::Syntax(version::membership(self.version)),
        ]);
        script.append(inner);
        script.push(&[
            SqlPart::Syntax("REVOKE "),
            SqlPart::Name(role),
            SqlPart::Syntax(" FROM CURRENT_USER"),
        ]);
        Ok(script)
    }
}

/// The error for a failed login: [`Error::NoPassword`] if PostgreSQL refused an empty password,
/// [`Error::Connect`] in all other cases.
fn refused(config: &Config, database: &str, source: ConnectError) -> Error {
    let (database, role) = (database.to_owned(), config.admin_role.clone());
    match source {
        ConnectError::Refused(reported)
            if reported.sqlstate == SqlState::INVALID_PASSWORD.code()
                && config.admin_password.reveal().is_empty() =>
        {
            Error::NoPassword { database, role }
        }
        source => Error::Connect {
            database,
            role,
            source: Box::new(source),
        },
    }
}

/// The maximum number of attempts at an operation that conflicts with changes of other sessions.
const MAX_TRIES: u32 = 20;

/// Runs `act`, which changes privileges, and retries it if another session changed privileges on
/// the same object. PostgreSQL reports this conflict as an internal error after the other change is
/// committed. `act` must roll back a failed attempt.
pub(super) async fn retry_on_conflict<F, T>(act: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    for _ in 1..MAX_TRIES {
        match act().await {
            Err(error) if error.sqlstate() == Some(CONFLICT) => {}
            done => return done,
        }
    }
    act().await
}

/// The SQLSTATE of the error "tuple concurrently updated" (`internal_error`).
const CONFLICT: &str = "XX000";

impl Script {
    /// Runs the statements in one transaction.
    pub(super) async fn run(&self, session: &Session) -> Result<()> {
        session.begin().await?;
        let ran = self.run_each(session).await;
        session.end(ran).await
    }

    /// Runs the statements one by one without opening a transaction. Used for statements that
    /// PostgreSQL does not run in a transaction, and inside of a transaction that the caller has
    /// opened.
    pub(super) async fn run_each(&self, session: &Session) -> Result<()> {
        for (text, shown) in self.statements() {
            let ran = session.client.batch_execute(text).await;
            ran.map_err(|error| Error::of_statement(error, shown))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn session() -> Session {
        let cluster = tidegate_embedded::testing::cluster();
        let config = Config::from_url(&cluster.admin_url()).unwrap();
        Session::open(&config, "postgres").await.unwrap()
    }

    #[tokio::test]
    async fn a_lock_is_waited_for_longer_than_lock_timeout_and_not_for_ever() {
        let lock = |timeout| AdvisoryLock {
            key: "a lock of the test",
            others: "others test",
            timeout,
        };
        let (first, second) = (session().await, session().await);
        let long = lock(Duration::from_mins(1));
        first.lock(&long).await.unwrap();
        let short = session().await;
        let missed = short.lock(&lock(Duration::from_millis(20))).await;
        let missed = missed.unwrap_err();
        assert!(matches!(missed, Error::Busy("others test")), "{missed}");

        let watcher = session().await;
        // These limits replace the `lock_timeout` and `statement_timeout` that every session has.
        let brief = "SET lock_timeout = '200ms'; SET statement_timeout = '200ms'";
        second.client.batch_execute(brief).await.unwrap();
        let mut waiting = std::pin::pin!(second.lock(&long));
        let waits = async {
            let waits = "SELECT FROM pg_catalog.pg_stat_activity \
                         WHERE wait_event_type = 'Lock' AND wait_event = 'advisory' \
                         AND pg_catalog.clock_timestamp() - query_start > '600ms'";
            while watcher.client.query(waits, &[]).await.unwrap().is_empty() {}
        };
        tokio::select! {
            waited = &mut waiting => panic!("it did not wait: {waited:?}"),
            () = waits => drop(first),
        }
        waiting.await.unwrap();
    }
}
