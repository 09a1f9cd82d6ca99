#![doc = include_str!("../README.md")]

mod adoption;
mod all_users_role;
mod authenticator;
mod claims;
mod credentials;
mod database_content;
pub mod doctor;
mod error;
mod grants;
mod group;
mod group_login;
mod handover;
mod repair;
mod restricted;
mod revocation;
mod right;
mod role;
mod role_passwords;
mod script;
mod session;
mod session_cache;
mod shared;
mod tenant;
mod user_role;
mod users;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, RoleName};
use tokio::runtime::Handle;

pub use adoption::{Adoption, Grantee, RightsChange};
pub use claims::{FIRST_CLAIMS_GENERATION, RoleIdentity};
pub use credentials::RoleCredentials;
pub use error::{Error, Result};
pub use right::Right;
pub use role_passwords::RolePasswords;
pub use script::{Script, is_unprintable};
pub use tidegate_service::ClaimsState;

use tidegate_wire::Config;

use session::{AdvisoryLock, Session};
use session_cache::SessionCache;

/// The version and the limits on connections that a PostgreSQL server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server's `server_version_num`.
    pub version: u32,
    /// The server's `max_connections`.
    pub max_connections: usize,
    /// The number of connections that only privileged roles can use: the sum of
    /// `superuser_reserved_connections` and `reserved_connections`.
    pub reserved_connections: usize,
}

/// Holds the advisory lock of a tenant's groups until this value is dropped. While a node holds the
/// lock, no other node changes the members of these groups.
pub struct GroupLock {
    /// The session that holds the lock. It is `None` only after the drop has begun.
    session: Option<Session>,
    sessions: SessionCache,
}

impl Drop for GroupLock {
    /// Releases the lock in a background task, and returns the session to the cache. Outside of a
    /// Tokio runtime the session is closed instead, which also releases the lock.
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) = (self.session.take(), Handle::try_current()) else {
            return;
        };
        let sessions = self.sessions.clone();
        runtime.spawn(async move {
            let unlock = "SELECT pg_catalog.pg_advisory_unlock_all()";
            if session.client.batch_execute(unlock).await.is_ok() {
                sessions.put(session);
            }
        });
    }
}

impl fmt::Debug for GroupLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupLock")
    }
}

/// Runs administrative operations on a cluster, logged in as the administrator.
#[derive(Clone, Debug)]
pub struct Admin {
    config: Config,
    passwords: RolePasswords,
    /// One lock for each database, by name. The lock serialises changes of the database's users,
    /// because two sessions cannot change the privileges on the same database at the same time.
    user_locks: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
    /// Idle sessions in the database of `admin_url`.
    sessions: SessionCache,
}

/// The lock for creating and dropping databases. Its timeout is long, because several nodes may
/// queue for the lock, and each may hold it until its `CREATE DATABASE` times out.
const DATABASE_LOCK: AdvisoryLock<'_> = AdvisoryLock {
    key: "tidegate makes a database",
    others: "others make or drop databases",
    timeout: Duration::from_mins(5),
};

impl Admin {
    /// Creates an `Admin` that logs in with `config`. Connects to no server before the first
    /// operation.
    pub fn new(config: Config, passwords: RolePasswords) -> Self {
        Self {
            config,
            passwords,
            user_locks: Arc::default(),
            sessions: SessionCache::default(),
        }
    }

    async fn open(&self, database: &str) -> Result<Session> {
        Session::open(&self.config, database).await
    }

    /// Opens a session in the database of `admin_url`.
    async fn open_admin_database(&self) -> Result<Session> {
        self.open(self.config.admin_database.as_str()).await
    }

    /// Reads the version and the connection limits of the server. The limits determine the size of
    /// the pool.
    pub async fn server(&self) -> Result<Server> {
        let session = self.open_admin_database().await?;
        let row = session
            .client
            .query_one(
                "SELECT pg_catalog.current_setting('max_connections')::int4, \
                        pg_catalog.current_setting('superuser_reserved_connections')::int4 \
                        + coalesce(pg_catalog.current_setting('reserved_connections', true), '0')\
                          ::int4",
                &[],
            )
            .await?;
        let count = |column: usize| usize::try_from(row.get::<_, i32>(column)).unwrap_or(0);
        Ok(Server {
            version: session.version,
            max_connections: count(0),
            reserved_connections: count(1),
        })
    }

    /// Whether the cluster has a role of this name.
    pub async fn has_role(&self, role: &RoleName) -> Result<bool> {
        let session = self.open_admin_database().await?;
        let found = role::origin(&session, role.as_str()).await?;
        Ok(found != role::RoleOrigin::Missing)
    }

    /// Creates the control database if it does not exist, with access for the administrator only.
    ///
    /// # Errors
    ///
    /// [`Error::MissingRight`] with the SQL to run if the administrator may not create the
    /// database; [`Error::Occupied`] if the database is one of PostgreSQL's own, belongs to a
    /// tenant, or contains other tables; [`Error::Busy`].
    pub async fn prepare_control_database(&self) -> Result<()> {
        let name = self.config.control_database.as_str();
        tenant::require_not_reserved(name)?;
        let session = self.open_admin_database().await?;
        if tenant::database_exists(&session, name).await? {
            return tenant::require_control(&self.open(name).await?, name).await;
        }
        let script = doctor::control_database(name, &session.role);
        if !doctor::may_create_databases(&session).await? {
            let sql = script.to_string().lines().map(str::to_owned).collect();
            return Err(Error::MissingRight {
                role: session.role.clone(),
                sql,
            });
        }
        session.lock(&DATABASE_LOCK).await?;
        // Another node may have created the database while this node waited for the lock.
        if tenant::database_exists(&session, name).await? {
            return Ok(());
        }
        script.run_each(&session).await
    }

    /// Closes the databases `postgres` and `template1` to all roles except superusers and roles
    /// with a CONNECT grant. Meant for a cluster that only the service uses.
    pub async fn close_maintenance_databases(&self) -> Result<()> {
        let mut script = Script::default();
        script.push(&[script::SqlPart::Syntax(
            "REVOKE CONNECT, TEMPORARY ON DATABASE postgres, template1 FROM PUBLIC",
        )]);
        script.run(&self.open_admin_database().await?).await
    }

    /// Creates a tenant: the owner's role, the role of all users, and a database whose schema
    /// `public` belongs to the owner.
    ///
    /// # Errors
    ///
    /// [`Error::Reserved`], [`Error::DatabaseExists`], [`Error::RoleExists`],
    /// [`Error::MissingRight`], [`Error::Busy`]. After any error, everything that was created is
    /// dropped again.
    pub async fn create_tenant(&self, database: &DatabaseName) -> Result<()> {
        self.refuse_reserved(database)?;
        let name = database.as_str();
        let session = self.open_admin_database().await?;
        session.lock(&DATABASE_LOCK).await?;
        let mut made = tenant::CreatedObjects::default();
        let created = tenant::create(&session, name, &self.passwords, &mut made).await;
        let done = match created {
            Ok(()) => self.hand_over(name).await,
            Err(error) => Err(error),
        };
        if done.is_err() {
            tenant::abandon(&session, name, &made).await;
            return done;
        }
        let owner = RoleName::new(name);
        self.try_to_provide_roles(database, &owner).await;
        self.try_to_provide_claims(database, &owner).await;
        Ok(())
    }

    /// Creates the role of all users and the authenticators of a tenant if they are missing, and
    /// makes the users members. Roles or memberships are missing if an older release created the
    /// tenant or the user. Authenticators are created only if users may share connections. `owner`
    /// is the owner's role. `shared` are the roles that anonymous callers share; they get no
    /// authenticator. Several nodes may call this at the same time.
    ///
    /// # Errors
    ///
    /// Errors of the connection, [`Error::Busy`] and [`Error::RoleExists`].
    pub async fn provide_roles(
        &self,
        database: &DatabaseName,
        owner: &RoleName,
        shared: &[String],
    ) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        all_users_role::provide(self, &session, database.as_str()).await?;
        let users = authenticator::Users {
            database: database.as_str(),
            owner: Some(owner.as_str()),
            shared,
            only: None,
        };
        authenticator::provide(self, &session, &users).await
    }

    /// Calls [`Self::provide_roles`] for a new tenant. Errors are only logged, because nodes retry.
    async fn try_to_provide_roles(&self, database: &DatabaseName, owner: &RoleName) {
        if let Err(error) = self.provide_roles(database, owner, &[]).await {
            tracing::warn!(%database, %error, "could not create an authenticator for the tenant; retrying within an hour");
        }
    }

    async fn hand_over(&self, database: &str) -> Result<()> {
        let session = self.open(database).await?;
        tenant::hand_over(&session, database).await
    }

    /// Fails if a database is one of PostgreSQL's own or the control database.
    fn refuse_reserved(&self, database: &DatabaseName) -> Result<()> {
        let name = database.as_str();
        let ours = *database == self.config.control_database;
        let ours = ours.then_some("the service keeps its own data there");
        match tenant::reserved(name).or(ours) {
            None => Ok(()),
            Some(reason) => Err(Error::Reserved {
                name: name.to_owned(),
                reason,
            }),
        }
    }

    /// Plans the adoption of a database. `owner` will be the role of the tenant's owner. Changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Reserved`], [`Error::NoDatabase`], [`Error::RoleExists`], [`Error::MissingRight`].
    pub async fn plan_adoption(
        &self,
        database: &DatabaseName,
        owner: &RoleName,
    ) -> Result<Adoption> {
        let name = database.as_str();
        self.refuse_reserved(database)?;
        if !tenant::database_exists(&self.open_admin_database().await?, name).await? {
            return Err(Error::NoDatabase(name.to_owned()));
        }
        let session = self.open(name).await?;
        adoption::plan(&session, name, owner.as_str(), &self.passwords).await
    }

    /// Runs a planned adoption in one transaction. After that, tries to create the role of all
    /// users, the authenticators and the functions of claims. Errors of this second step are only
    /// logged.
    pub async fn adopt(&self, database: &DatabaseName, adoption: &Adoption) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        adoption.script.run(&session).await?;
        self.try_to_provide_roles(database, &adoption.owner).await;
        self.try_to_provide_claims(database, &adoption.owner).await;
        Ok(())
    }

    /// Releases a database from the service: drops the tenant's roles, gives their objects to the
    /// database's owner, and undoes `changes`.
    ///
    /// If the database does not exist, the roles are dropped and there is no error. After any error
    /// everything is as before, except that the roles' sessions may have been terminated.
    ///
    /// # Errors
    ///
    /// [`Error::UsedElsewhere`], and [`Error::CarriesRights`] if code of the roles would get the
    /// privileges of the database's owner.
    pub async fn release_tenant(
        &self,
        database: &DatabaseName,
        roles: &[String],
        changes: &[RightsChange],
    ) -> Result<()> {
        let name = database.as_str();
        let home = self.open_admin_database().await?;
        let mut roles = roles.to_vec();
        roles.extend(group::of_tenant(&home, name).await?);
        roles.extend(authenticator::of_tenant(&home, name).await?);
        roles.extend(all_users_role::of_tenant(&home, name).await?);
        let names: Vec<_> = roles.iter().map(String::as_str).collect();
        let found = tenant::database_exists(&home, name).await?;
        // `DROP OWNED` also revokes privileges on shared objects, but it can only run in the
        // tenant's database. If the database does not exist, these privileges prevent dropping the
        // roles.
        let elsewhere = if found {
            role::OutsideDatabase::InDatabases
        } else {
            role::OutsideDatabase::Shared
        };
        role::require_nothing_outside(&home, &names, name, elsewhere).await?;
        if !found {
            return tenant::drop_roles(&home, &roles).await;
        }
        let session = self.open(name).await?;
        session::retry_on_conflict(|| adoption::release((&home, &session), name, &roles, changes))
            .await
    }

    /// Drops a tenant's database with all its data, and the tenant's roles.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] and [`Error::UsedElsewhere`]. Both are returned before anything is dropped.
    pub async fn drop_tenant(&self, database: &DatabaseName, roles: &[String]) -> Result<()> {
        let session = self.open_admin_database().await?;
        session.lock(&DATABASE_LOCK).await?;
        let mut roles = roles.to_vec();
        roles.extend(group::of_tenant(&session, database.as_str()).await?);
        roles.extend(authenticator::of_tenant(&session, database.as_str()).await?);
        roles.extend(all_users_role::of_tenant(&session, database.as_str()).await?);
        let names: Vec<_> = roles.iter().map(String::as_str).collect();
        let (name, elsewhere) = (database.as_str(), role::OutsideDatabase::Shared);
        role::require_nothing_outside(&session, &names, name, elsewhere).await?;
        tenant::drop_database(&session, database.as_str()).await?;
        tenant::drop_roles(&session, &roles).await
    }
}
