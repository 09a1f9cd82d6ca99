//! A database with roles, and an executor in front of it.

mod rows;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tidegate_pool::{Key, OpenError, Pool, RoleStats, Settings};
use tidegate_postgres::{
    Credential, Credentials, RoleConnector, Roles, role_password, scram_verifier,
};
use tidegate_service::Control;
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Backend, Config, Secret, StartupPins, TerminateOutcome, Terminator};
use tokio_postgres::{Client, NoTls};

pub(crate) use rows::{Gathered, Rows, Stalled};
pub(crate) use sql::Sql;

const MASTER: [u8; 32] = [7; 32];

/// A database of its own with the roles `<name>` (who may do everything in it), `<name>/alice`
/// and `<name>/guest`.
pub(crate) struct Stage {
    pub(crate) name: String,
    pub(crate) roles: Roles,
    pub(crate) admin: Client,
    cluster: &'static Cluster,
}

impl Stage {
    /// The stage on the cluster that the tests share. `name` is the test's own.
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(
            tidegate_embedded::testing::cluster(),
            name,
            Settings::default(),
        )
        .await
    }

    pub(crate) async fn on(cluster: &'static Cluster, name: &str, settings: Settings) -> Self {
        let config = Config::from_url(&cluster.socket_url("postgres")).unwrap();
        Self::at(cluster, name, settings, config).await
    }

    /// The stage reached as `config` says.
    pub(crate) async fn at(
        cluster: &'static Cluster,
        name: &str,
        settings: Settings,
        config: Config,
    ) -> Self {
        let root = connect(&cluster.url("postgres")).await;
        for role in [
            name.to_owned(),
            format!("{name}/alice"),
            format!("{name}/guest"),
        ] {
            let verifier = scram_verifier(&role_password(&MASTER, &role, 1), &[3; 16]);
            let make = format!("CREATE ROLE \"{role}\" LOGIN PASSWORD '{verifier}'");
            root.batch_execute(&make).await.unwrap();
        }
        root.batch_execute(&format!("CREATE DATABASE \"{name}\""))
            .await
            .unwrap();
        let admin = connect(&cluster.url(name)).await;
        admin
            .batch_execute(&format!(
                "REVOKE CONNECT, TEMP ON DATABASE \"{name}\" FROM PUBLIC;
                 GRANT CONNECT, CREATE, TEMP ON DATABASE \"{name}\" TO \"{name}\";
                 GRANT CONNECT, TEMP ON DATABASE \"{name}\" TO \"{name}/alice\";
                 GRANT CONNECT ON DATABASE \"{name}\" TO \"{name}/guest\";
                 ALTER SCHEMA public OWNER TO \"{name}\";
                 REVOKE ALL ON SCHEMA public FROM PUBLIC;
                 GRANT USAGE ON SCHEMA public TO \"{name}/alice\", \"{name}/guest\";"
            ))
            .await
            .unwrap();
        let mut config = config;
        config.control_database = DatabaseName::new(name);
        let config = Arc::new(config);
        let control = Control::new(config.clone(), Jitter::none()).unwrap();
        let service = Arc::new(Service(cluster));
        let connector = RoleConnector::new(config, service.clone(), service);
        let pool = Pool::new(connector, settings, Jitter::none());
        Self {
            name: name.to_owned(),
            roles: Roles::new(pool).with_service(Arc::new(control)),
            admin,
            cluster,
        }
    }

    /// The owner, in a session of its own.
    pub(crate) fn owner(&self) -> Login {
        self.login("", RoleUse::User(1))
    }

    pub(crate) fn alice(&self) -> Login {
        self.login("/alice", RoleUse::User(2))
    }

    /// The role that strangers share.
    pub(crate) fn guest(&self) -> Login {
        self.login("/guest", RoleUse::Anonymous)
    }

    fn login(&self, user: &str, role_use: RoleUse) -> Login {
        Login {
            database: DatabaseName::new(&self.name),
            role: RoleName::new(format!("{}{user}", self.name)),
            role_use,
        }
    }

    /// The database as its administrator.
    pub(crate) fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// A configuration that leads to the cluster over TCP.
    pub(crate) fn tcp(&self) -> Config {
        Config::from_url(&self.cluster.url(&self.name)).unwrap()
    }

    /// One value that the administrator sees.
    pub(crate) async fn value(&self, query: &str) -> String {
        let row = self.admin.query_one(query, &[]).await.unwrap();
        row.get::<_, Option<String>>(0).unwrap_or_default()
    }

    /// What runs in the database with this mark in its text.
    pub(crate) async fn running(&self, mark: &str) -> i64 {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 \
            AND pid <> pg_backend_pid() AND state <> 'idle' AND strpos(query, $2) > 0";
        // In a transaction PostgreSQL would go on showing what ran when it was asked first.
        let renew = "SELECT pg_stat_clear_snapshot()";
        self.admin.batch_execute(renew).await.unwrap();
        self.admin
            .query_one(query, &[&self.name, &mark])
            .await
            .unwrap()
            .get(0)
    }

    /// Waits until no connection is opened, lent, reset or closed: who asks next gets the one that
    /// was used last. A reset that takes longer than a moment has another one opened meanwhile.
    pub(crate) async fn rest(&self) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        let is_busy =
            |of: &RoleStats| of.opening + of.lent + of.resetting + of.leaving + of.waiting > 0;
        while self.roles.pool().stats().roles.iter().any(is_busy) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "a connection never rests"
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until as many statements with this mark run.
    pub(crate) async fn wait_for_running(&self, mark: &str, count: i64) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while self.running(mark).await != count {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{mark}: never {count} running"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The password of a role on a stage.
pub(crate) fn password(role: &str) -> String {
    role_password(&MASTER, role, 1)
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub(crate) fn pins() -> StartupPins {
    StartupPins {
        server_version: u32::from(tidegate_embedded::testing::cluster().version().major) * 10_000,
        ..StartupPins::default()
    }
}

/// The service's part: passwords by the master key, and the last resort.
struct Service(&'static Cluster);

impl Credentials for Service {
    fn of<'a>(
        &'a self,
        key: &'a Key,
        _shared: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let password = Secret::new(password(key.role.as_str()));
        Box::pin(std::future::ready(Ok(Credential::new(password, pins()))))
    }
}

impl Terminator for Service {
    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        Box::pin(async move {
            let admin = connect(&self.0.url("postgres")).await;
            admin
                .execute("SELECT pg_terminate_backend($1)", &[&backend.process_id])
                .await
                .unwrap();
            TerminateOutcome::Requested
        })
    }
}
