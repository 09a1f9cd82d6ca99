//! Administration: roles, databases, adoption, and a look at what is missing.
//!
//! Everything here runs as the administrator of the cluster. It reads `pg_catalog` and changes
//! roles, databases and rights; it touches no table of a tenant.

mod adoption;
mod credentials;
pub mod doctor;
mod error;
mod grants;
mod group;
mod role;
mod script;
mod session;
mod survey;
mod tenant;

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{BoxFuture, DatabaseName, RoleName};
use tokio::sync::Mutex;

pub use adoption::{Adoption, Grantee, Right, RightsChange};
pub use credentials::RoleCredentials;
pub use error::{Error, Result};
pub use script::Script;

use crate::config::{Config, Secret};
use crate::pool::{Key, Repair};
use crate::{role_password, scram_verifier};
use session::Session;

/// Makes the verifiers of login roles from the master secret.
#[derive(Clone)]
pub struct RolePasswords {
    secret: [u8; 32],
    salt: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
}

impl RolePasswords {
    /// `secret` is what passwords derive from; `salt` returns random bytes.
    pub fn new(secret: [u8; 32], salt: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self {
            secret,
            salt: Arc::new(salt),
        }
    }

    /// The password of a role.
    pub fn password(&self, role: &str) -> String {
        role_password(&self.secret, role, GENERATION)
    }

    fn random_number(&self) -> u32 {
        let [a, b, c, d, ..] = (self.salt)();
        u32::from_be_bytes([a, b, c, d])
    }

    /// A verifier for the password of a role.
    fn verifier(&self, role: &str) -> String {
        scram_verifier(&self.password(role), &(self.salt)())
    }
}

impl fmt::Debug for RolePasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RolePasswords([redacted])")
    }
}

/// The generation of role passwords.
const GENERATION: u32 = 1;

/// A cluster's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// `server_version_num`.
    pub version: u32,
    /// How many connections it takes.
    pub max_connections: usize,
    /// How many of them are not for ordinary roles.
    pub reserved_connections: usize,
}

/// Nobody else changes members of a tenant's groups while this is there.
pub struct GroupTurn {
    /// Its connection holds the lock.
    _session: Session,
}

impl fmt::Debug for GroupTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupTurn")
    }
}

/// The administrator of a cluster.
#[derive(Clone, Debug)]
pub struct Admin {
    config: Config,
    passwords: RolePasswords,
    /// Changes of users take turns here: PostgreSQL lets no two sessions change the rights on one
    /// database at once.
    users: Arc<Mutex<()>>,
}

impl Admin {
    /// The administrator that `config` names. Connects when something is to be done.
    pub fn new(config: Config, passwords: RolePasswords) -> Self {
        Self {
            config,
            passwords,
            users: Arc::default(),
        }
    }

    async fn open(&self, database: &str) -> Result<Session> {
        Session::open(&self.config, database).await
    }

    /// A session in the database that `admin_url` names.
    async fn open_home(&self) -> Result<Session> {
        self.open(self.config.admin_database.as_str()).await
    }

    /// What the server can do: decides how many connections there may be.
    pub async fn server(&self) -> Result<Server> {
        let session = self.open_home().await?;
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

    /// Makes the control database unless it is there, closed to everybody else.
    ///
    /// # Errors
    /// [`Error::MissingRight`] with the SQL to run when the administrator may not make it.
    pub async fn prepare_control_database(&self) -> Result<()> {
        let session = self.open_home().await?;
        let name = self.config.control_database.as_str();
        if tenant::database_exists(&session, name).await? {
            return Ok(());
        }
        let script = doctor::control_database(name, &session.role);
        if !doctor::may_create_databases(&session).await? {
            let sql = script.to_string().lines().map(str::to_owned).collect();
            return Err(Error::MissingRight {
                role: session.role.clone(),
                sql,
            });
        }
        script.run_each(&session).await
    }

    /// Makes a tenant: the owner's role and a database with the schema `public` for it.
    ///
    /// # Errors
    /// [`Error::Reserved`], [`Error::DatabaseExists`], [`Error::ForeignRole`]; after any error
    /// nothing is left behind.
    pub async fn create_tenant(&self, database: &DatabaseName) -> Result<()> {
        self.refuse_reserved(database)?;
        let name = database.as_str();
        let session = self.open_home().await?;
        let created = tenant::create(&session, name, &self.passwords).await;
        let done = match created {
            Ok(()) => self.hand_over(name).await,
            Err(error @ (Error::DatabaseExists(_) | Error::ForeignRole(_))) => return Err(error),
            Err(error) => Err(error),
        };
        if done.is_err() {
            tenant::abandon(&session, name).await;
        }
        done
    }

    async fn hand_over(&self, database: &str) -> Result<()> {
        let session = self.open(database).await?;
        tenant::hand_over(&session, database).await
    }

    /// A database that belongs to the cluster or to the service is no tenant.
    fn refuse_reserved(&self, database: &DatabaseName) -> Result<()> {
        let name = database.as_str();
        let reason = match name {
            "postgres" => "it is the cluster's own",
            "template0" | "template1" => "it is a template for new databases",
            _ if *database == self.config.control_database => {
                "the service keeps its own data there"
            }
            _ => return Ok(()),
        };
        Err(Error::Reserved {
            name: name.to_owned(),
            reason,
        })
    }

    /// Plans the adoption of a database whose owner will be the role `owner`. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Reserved`], [`Error::NoDatabase`], [`Error::ForeignRole`],
    /// [`Error::MissingRight`].
    pub async fn plan_adoption(
        &self,
        database: &DatabaseName,
        owner: &RoleName,
    ) -> Result<Adoption> {
        let name = database.as_str();
        self.refuse_reserved(database)?;
        if !tenant::database_exists(&self.open_home().await?, name).await? {
            return Err(Error::NoDatabase(name.to_owned()));
        }
        let session = self.open(name).await?;
        adoption::plan(&session, name, owner.as_str(), &self.passwords).await
    }

    /// Runs a planned adoption, in one transaction.
    pub async fn adopt(&self, database: &DatabaseName, adoption: &Adoption) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        adoption.script.run(&session).await
    }

    /// Takes the service away from a database: drops the tenant's roles, gives what they own to
    /// the database's owner, and takes `changes` back.
    ///
    /// A database that is gone is no error.
    pub async fn release_tenant(
        &self,
        database: &DatabaseName,
        roles: &[String],
        changes: &[RightsChange],
    ) -> Result<()> {
        let name = database.as_str();
        let home = self.open_home().await?;
        let mut roles = roles.to_vec();
        roles.extend(group::of_tenant(&home, name).await?);
        if !tenant::database_exists(&home, name).await? {
            return tenant::drop_roles(&home, &roles).await;
        }
        let session = self.open(name).await?;
        let names: Vec<_> = roles.iter().map(String::as_str).collect();
        self.revoke_as_grantors(&session, database, (&names, &names))
            .await?;
        adoption::release((&home, &session), name, &roles, changes).await
    }

    /// Drops a tenant's database with all its data, and the tenant's roles.
    pub async fn drop_tenant(&self, database: &DatabaseName, roles: &[String]) -> Result<()> {
        let session = self.open_home().await?;
        tenant::drop_database(&session, database.as_str()).await?;
        tenant::drop_roles(&session, roles).await?;
        let groups = group::of_tenant(&session, database.as_str()).await?;
        tenant::drop_roles(&session, &groups).await
    }

    /// Makes the role of a user: it may connect to the tenant's database and use the schema
    /// `public`, and nothing else.
    ///
    /// # Errors
    /// [`Error::ForeignRole`].
    pub async fn create_user(&self, database: &DatabaseName, role: &RoleName) -> Result<()> {
        let _turn = self.users.lock().await;
        let session = self.open(database.as_str()).await?;
        let names = (database.as_str(), role.as_str());
        session::alone(|| tenant::create_user(&session, names, &self.passwords)).await
    }

    /// Waits for its turn to change members of a tenant's groups, among all nodes of the cluster;
    /// the turn ends with what is returned. No longer than the administrator waits for any lock.
    pub async fn turn_for_groups(&self, database: &DatabaseName) -> Result<GroupTurn> {
        let session = self.open_home().await?;
        group::wait_for_turn(&session, database.as_str()).await?;
        Ok(GroupTurn { _session: session })
    }

    /// Makes the role of a user a member of the role `group`, which is `database/group/name` and is
    /// made if it is not there, and of no other group of the tenant. The roles of groups stay when
    /// their last member leaves, because rights hang on them; they go with the tenant.
    ///
    /// # Errors
    /// [`Error::ForeignRole`].
    pub async fn set_group(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        group: Option<&RoleName>,
    ) -> Result<()> {
        let session = self.open_home().await?;
        let group = group.map(RoleName::as_str);
        group::set(&session, database.as_str(), role.as_str(), group).await
    }

    /// Refuses a role that owns something of the database with [`Error::OwnsObjects`].
    pub async fn owns_nothing(&self, database: &DatabaseName, role: &RoleName) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        role::require_nothing_owned(&session, role.as_str()).await
    }

    /// Drops the role of a user. With `reassign`, what it owns goes to the tenant's owner;
    /// without, owning anything is [`Error::OwnsObjects`]. A role that is gone is no error.
    pub async fn drop_user(
        &self,
        database: &DatabaseName,
        role: &RoleName,
        owner: &RoleName,
        reassign: bool,
    ) -> Result<()> {
        let _turn = self.users.lock().await;
        let session = self.open(database.as_str()).await?;
        match role::existing(&session, role.as_str()).await? {
            role::Existing::Nothing => return Ok(()),
            role::Existing::Foreign => return Err(Error::ForeignRole(role.to_string())),
            role::Existing::Ours => {}
        }
        let roles = [role.as_str()];
        self.revoke_as_grantors(&session, database, (&roles, &roles))
            .await?;
        let home = self.open_home().await?;
        let sessions = (&home, &session);
        let names = (role.as_str(), owner.as_str());
        session::alone(|| tenant::drop_user(sessions, names, reassign)).await
    }

    /// Takes back what users granted to roles, or these roles granted to others, on objects that
    /// are not theirs. Only the grantor can, not even a superuser; but we hold its login.
    async fn revoke_as_grantors(
        &self,
        session: &Session,
        database: &DatabaseName,
        (grantees, grantors): (&[&str], &[&str]),
    ) -> Result<()> {
        for (grantor, script) in grants::by_others(session, grantees, grantors).await? {
            let password = Secret::new(self.passwords.password(&grantor));
            let login = self.config.clone().with_login(&grantor, password);
            match Session::open(&login, database.as_str()).await {
                Ok(session) => script.run(&session).await?,
                // PostgreSQL tells what is left when the role is dropped.
                Err(error) => tracing::warn!(grantor, %error, "grants cannot be taken back"),
            }
        }
        Ok(())
    }

    /// Runs statements of the operator's own as a user whose role Tidegate made, in one
    /// transaction. Names in them are qualified: the `search_path` is empty.
    pub async fn run_as(&self, database: &DatabaseName, role: &RoleName, sql: &str) -> Result<()> {
        let password = Secret::new(self.passwords.password(role.as_str()));
        let login = self.config.clone().with_login(role.as_str(), password);
        let session = Session::open(&login, database.as_str()).await?;
        let ran = session.client.batch_execute(sql).await;
        ran.map_err(|error| Error::of_statement(error, "the script"))
    }

    async fn repair_role(&self, key: &Key) -> tidegate_sql::Result<()> {
        let session = self
            .open_home()
            .await
            .map_err(tidegate_sql::Error::internal)?;
        let (role, database) = (key.role.as_str(), key.database.as_str());
        let existing = role::existing(&session, role).await;
        if existing.map_err(tidegate_sql::Error::internal)? != role::Existing::Ours
            || !tenant::database_exists(&session, database)
                .await
                .map_err(tidegate_sql::Error::internal)?
        {
            return Err(tidegate_sql::Error::NoDatabase);
        }
        let script = role::repair(role, database, &self.passwords);
        script
            .run(&session)
            .await
            .map_err(tidegate_sql::Error::internal)
    }
}

impl Repair for Admin {
    fn repair<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, tidegate_sql::Result<()>> {
        Box::pin(self.repair_role(key))
    }
}
