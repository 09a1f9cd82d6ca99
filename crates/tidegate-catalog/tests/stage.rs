//! A database of the shared cluster, and catalogs over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_catalog::{Catalogs, Definitions, Schema, Telling};
use tidegate_embedded::Cluster;
use tidegate_service::ServiceConnections;
use tidegate_sql::{DatabaseName, Login, RoleName, Sharing, Terms};
use tidegate_testkit::database_on;
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

/// Counts what a test says.
#[derive(Default)]
pub(crate) struct Said {
    definitions: AtomicU64,
    statements: AtomicU64,
}

impl Said {
    pub(crate) fn define(&self) {
        self.definitions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn run(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }
}

impl Definitions for Said {
    fn count(&self, _: &DatabaseName, telling: Telling) -> u64 {
        let statements = match telling {
            Telling::Always => 0,
            Telling::Never | Telling::Unknown => self.statements.load(Ordering::Relaxed),
        };
        self.definitions.load(Ordering::Relaxed) + statements
    }
}

pub(crate) struct Stage {
    pub(crate) catalogs: Catalogs,
    pub(crate) control: Arc<ServiceConnections>,
    pub(crate) definitions: Arc<Said>,
    pub(crate) database: DatabaseName,
    pub(crate) client: tokio_postgres::Client,
    owner: String,
}

impl Stage {
    /// A new database in which `sql` has run as the cluster's administrator.
    pub(crate) async fn new(database: &str, sql: &str) -> Self {
        Self::on(tidegate_embedded::testing::cluster(), database, sql).await
    }

    pub(crate) async fn on(cluster: &Cluster, database: &str, sql: &str) -> Self {
        let client = database_on(cluster, database, sql).await;
        let row = client.query_one("select current_user::text", &[]).await;
        let config = Config::from_url(&cluster.admin_url()).unwrap();
        let control = Arc::new(ServiceConnections::new(Arc::new(config), Jitter::none()).unwrap());
        let definitions = Arc::new(Said::default());
        Self {
            catalogs: Catalogs::new(control.clone(), definitions.clone()),
            control,
            definitions,
            database: DatabaseName::new(database),
            client,
            owner: row.unwrap().get(0),
        }
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    /// The administrator, who owns what the test made.
    pub(crate) fn owner(&self) -> Login {
        self.login(&self.owner)
    }

    pub(crate) fn login(&self, role: &str) -> Login {
        Login {
            database: self.database.clone(),
            role: RoleName::new(role),
            sharing: Sharing::One(1),
        }
    }

    /// The schema `public` as the owner sees it.
    pub(crate) async fn public(&self) -> Arc<Schema> {
        self.seen_by(&self.owner(), "public").await.unwrap()
    }

    pub(crate) async fn seen_by(&self, login: &Login, schema: &str) -> Option<Arc<Schema>> {
        let found = self.catalogs.schema(login, schema, &Terms::default()).await;
        found.unwrap()
    }
}
