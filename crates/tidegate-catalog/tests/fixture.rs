//! A database of the shared cluster with a schema cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_catalog::{CatalogCache, DdlCounter, DdlVisibility, Schema};
use tidegate_embedded::Cluster;
use tidegate_service::ServiceConnections;
use tidegate_sql::{DatabaseName, Login, QueryOptions, RoleName, RoleUse};
use tidegate_testkit::{config, database_on, service_connections};

/// Counts the definitions that a test reports to the cache.
#[derive(Default)]
pub(crate) struct DefinitionCounter {
    definitions: AtomicU64,
    statements: AtomicU64,
}

impl DefinitionCounter {
    pub(crate) fn define(&self) {
        self.definitions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn run(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }
}

impl DdlCounter for DefinitionCounter {
    fn count(&self, _: &DatabaseName, visibility: DdlVisibility) -> u64 {
        let statements = match visibility {
            DdlVisibility::Always => 0,
            DdlVisibility::Never | DdlVisibility::Unknown => {
                self.statements.load(Ordering::Relaxed)
            }
        };
        self.definitions.load(Ordering::Relaxed) + statements
    }
}

pub(crate) struct Fixture {
    pub(crate) catalogs: CatalogCache,
    pub(crate) control: Arc<ServiceConnections>,
    pub(crate) definitions: Arc<DefinitionCounter>,
    pub(crate) database: DatabaseName,
    pub(crate) client: tokio_postgres::Client,
    owner: String,
}

impl Fixture {
    /// A new database in which `sql` was run as the cluster's administrator.
    pub(crate) async fn new(database: &str, sql: &str) -> Self {
        Self::on(tidegate_embedded::testing::cluster(), database, sql).await
    }

    pub(crate) async fn on(cluster: &Cluster, database: &str, sql: &str) -> Self {
        let client = database_on(cluster, database, sql).await;
        let row = client.query_one("select current_user::text", &[]).await;
        let control = Arc::new(service_connections(config(
            &cluster.admin_url(),
            "postgres",
        )));
        let definitions = Arc::new(DefinitionCounter::default());
        Self {
            catalogs: CatalogCache::new(control.clone(), definitions.clone()),
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

    /// The login of the administrator, who owns the objects of the test.
    pub(crate) fn owner(&self) -> Login {
        self.login(&self.owner)
    }

    pub(crate) fn login(&self, role: &str) -> Login {
        Login {
            database: self.database.clone(),
            role: RoleName::new(role),
            role_use: RoleUse::User(1),
        }
    }

    /// The schema `public` as the owner sees it.
    pub(crate) async fn public(&self) -> Arc<Schema> {
        self.seen_by(&self.owner(), "public").await.unwrap()
    }

    pub(crate) async fn seen_by(&self, login: &Login, schema: &str) -> Option<Arc<Schema>> {
        let found = self
            .catalogs
            .schema(login, schema, &QueryOptions::default())
            .await;
        found.unwrap()
    }
}
