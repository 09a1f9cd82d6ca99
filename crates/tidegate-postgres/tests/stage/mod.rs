//! A database with roles, and an executor in front of it.

mod rows;
mod sql;

use std::sync::Arc;
use std::time::Duration;

use tidegate_embedded::Cluster;
use tidegate_pool::{Pool, RoleStats, Settings};
use tidegate_postgres::{RoleConnector, Roles};
use tidegate_service::Control;
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, Sharing};
use tidegate_testkit::{Passwords, create_role, database_on, running, text, wait_for_running};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Backend, Config, StartupPins, TerminateOutcome, Terminator};
use tokio_postgres::Client;

pub(crate) use rows::{Gathered, Rows, Stalled};
pub(crate) use sql::Sql;
pub(crate) use tidegate_testkit::{connect, password};

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
        let admin = database_on(cluster, name, "").await;
        for user in ["", "/alice", "/guest"] {
            create_role(&admin, &format!("{name}{user}"), "").await;
        }
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
        let passwords = Arc::new(Passwords::new(cluster));
        let connector = RoleConnector::new(config, passwords, Arc::new(AdminTerminator(cluster)));
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
        self.login("", Sharing::One(1))
    }

    pub(crate) fn alice(&self) -> Login {
        self.login("/alice", Sharing::One(2))
    }

    /// The role that strangers share.
    pub(crate) fn guest(&self) -> Login {
        self.login("/guest", Sharing::Strangers)
    }

    fn login(&self, user: &str, sharing: Sharing) -> Login {
        Login {
            database: DatabaseName::new(&self.name),
            role: RoleName::new(format!("{}{user}", self.name)),
            sharing,
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
        text(&self.admin, query).await
    }

    /// What runs in the database with this mark in its text.
    pub(crate) async fn running(&self, mark: &str) -> i64 {
        running(&self.admin, mark).await
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
        wait_for_running(&self.admin, mark, count).await;
    }
}

pub(crate) fn pins() -> StartupPins {
    StartupPins {
        server_version: u32::from(tidegate_embedded::testing::cluster().version().major) * 10_000,
        ..StartupPins::default()
    }
}

/// Terminates backends as the administrator.
struct AdminTerminator(&'static Cluster);

impl Terminator for AdminTerminator {
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
