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

/// The limits of a PostgreSQL server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server's `server_version_num`.
    pub version: u32,
    /// The server's `max_connections`.
    pub max_connections: usize,
    /// How many of the connections are reserved, so that ordinary roles cannot use them.
    pub reserved_connections: usize,
}

/// Holds the lock of a tenant's groups. While it is held, no other node changes their members.
pub struct GroupLock {
    /// The session with the lock.
    session: Option<Session>,
    sessions: SessionCache,
}

impl Drop for GroupLock {
    /// Releases the lock in the background. Without a runtime, the end of the session releases it.
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

/// The administrator of a cluster.
#[derive(Clone, Debug)]
pub struct Admin {
    config: Config,
    passwords: RolePasswords,
    /// Serialises changes of one database's users, because PostgreSQL lets no two sessions change
    /// the privileges on one database at once. Tenants do not delay each other.
    users: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
    /// Idle sessions in the administrator's own database.
    sessions: SessionCache,
}

/// The lock for creating and dropping databases. Its wait is long, because several nodes may wait
/// and each may take as long as any statement of the administrator.
const DATABASE_LOCK: AdvisoryLock<'_> = AdvisoryLock {
    key: "tidegate makes a database",
    others: "others make or drop databases",
    timeout: Duration::from_mins(5),
};

impl Admin {
    /// An administrator with the login of `config`. It connects when it is first used.
    pub fn new(config: Config, passwords: RolePasswords) -> Self {
        Self {
            config,
            passwords,
            users: Arc::default(),
            sessions: SessionCache::default(),
        }
    }

    async fn open(&self, database: &str) -> Result<Session> {
        Session::open(&self.config, database).await
    }

    /// A session in the database of `admin_url`.
    async fn open_admin_database(&self) -> Result<Session> {
        self.open(self.config.admin_database.as_str()).await
    }

    /// The limits of the server, from which the size of the pool follows.
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
    /// [`Error::MissingRight`] with the SQL to run if the administrator may not create it, and
    /// [`Error::Occupied`] if the database belongs to the cluster or is used by others.
    pub async fn prepare_control_database(&self) -> Result<()> {
        let name = self.config.control_database.as_str();
        tenant::require_free(name)?;
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
        // Another node may have created it in the meantime.
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

    /// Creates a tenant: the owner's role, and a database whose schema `public` the owner gets.
    ///
    /// # Errors
    ///
    /// [`Error::Reserved`], [`Error::DatabaseExists`], [`Error::RoleExists`]. After any error,
    /// everything that was created is dropped again.
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
        self.try_to_share(database, &owner).await;
        self.try_to_provide_claims(database, &owner).await;
        Ok(())
    }

    /// Creates the roles that a tenant of an older release, or a user that an older node created,
    /// lacks. These are the role that lets the users connect, with all of them as members, and the
    /// authenticators if users may share connections. `owner` is the owner's role; `shared` are the
    /// roles that anonymous callers share. Several nodes may call this at once.
    ///
    /// # Errors
    ///
    /// Those of the connection, [`Error::Busy`] and [`Error::RoleExists`].
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

    /// Calls [`Self::provide_roles`] for a new tenant, which works without; so errors are logged.
    async fn try_to_share(&self, database: &DatabaseName, owner: &RoleName) {
        if let Err(error) = self.provide_roles(database, owner, &[]).await {
            tracing::warn!(%database, %error, "could not create an authenticator for the tenant; retrying within an hour");
        }
    }

    async fn hand_over(&self, database: &str) -> Result<()> {
        let session = self.open(database).await?;
        tenant::hand_over(&session, database).await
    }

    /// Fails if a database belongs to the cluster or to the service.
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

    /// Plans the adoption of a database whose owner will be the role `owner`. Changes nothing.
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

    /// Runs a planned adoption in one transaction.
    pub async fn adopt(&self, database: &DatabaseName, adoption: &Adoption) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        adoption.script.run(&session).await?;
        self.try_to_share(database, &adoption.owner).await;
        self.try_to_provide_claims(database, &adoption.owner).await;
        Ok(())
    }

    /// Releases a database from the service: drops the tenant's roles, gives what they own to the
    /// database's owner, and undoes `changes`.
    ///
    /// If the database does not exist, the roles are dropped and there is no error. After any error
    /// everything is as before, except that the roles' sessions have ended.
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
        // DROP OWNED also removes privileges on shared objects, but it needs a database to run in.
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
    /// [`Error::UsedElsewhere`]. It is returned before anything is dropped.
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
