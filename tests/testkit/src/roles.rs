//! Login roles, and an executor that runs statements as them.

use std::sync::Arc;

use tidegate_embedded::Cluster;
use tidegate_pool::{OpenError, Pool, PoolKey, Settings};
use tidegate_postgres::{
    ClaimsKey, Credential, Credentials, Postgres, RoleConnector, UserExecutor, role_password,
    scram_verifier,
};
use tidegate_service::ServiceConnections;
use tidegate_sql::{BoxFuture, DatabaseName};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Config, Secret, StartupParameters};
use tokio_postgres::Client;

const MASTER_SECRET: [u8; 32] = [7; 32];

/// The password of a role that [`create_role`] created.
pub fn password(role: &str) -> String {
    role_password(&MASTER_SECRET, role, 1)
}

/// Creates a login role. `options` are further options of `CREATE ROLE`.
///
/// # Panics
///
/// If PostgreSQL refuses the statement.
pub async fn create_role(client: &Client, role: &str, options: &str) {
    let verifier = scram_verifier(&password(role), &[3; 16]);
    let name = role.replace('"', "\"\"");
    let create = format!("CREATE ROLE \"{name}\" LOGIN PASSWORD '{verifier}' {options}");
    client.batch_execute(&create).await.unwrap();
}

/// The key that seals the claims of members for [`executor`].
pub fn claims_key(database: &str, generation: i32) -> ClaimsKey {
    ClaimsKey::derive(&MASTER_SECRET, database, generation)
}

/// The credentials of all roles that [`create_role`] created.
#[derive(Debug)]
pub struct Passwords {
    server_version: u32,
}

impl Passwords {
    /// Creates the credentials for a cluster. They depend on its version of PostgreSQL.
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            server_version: u32::from(cluster.version().major) * 10_000,
        }
    }
}

impl Credentials for Passwords {
    fn of<'a>(&'a self, key: &'a PoolKey, _: bool) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let startup = StartupParameters {
            server_version: self.server_version,
            ..StartupParameters::default()
        };
        let password = Secret::new(password(key.role.as_str()));
        Box::pin(std::future::ready(Ok(Credential::new(password, startup))))
    }
}

/// An executor for the roles of a cluster.
///
/// # Panics
/// If the configuration is invalid.
pub fn executor(cluster: &Cluster, config: Config) -> Postgres {
    executor_with(cluster, config, Settings::default())
}

/// An executor for the roles of a cluster, whose pool has these limits.
///
/// # Panics
/// If the configuration is invalid.
pub fn executor_with(cluster: &Cluster, config: Config, settings: Settings) -> Postgres {
    let config = Arc::new(config);
    let control = Arc::new(ServiceConnections::new(config.clone(), Jitter::none()).unwrap());
    let passwords = Arc::new(Passwords::new(cluster));
    let connector = RoleConnector::new(config, passwords, control.clone());
    let pool = Pool::new(connector, settings, Jitter::none());
    let derive = |database: &DatabaseName, generation| claims_key(database.as_str(), generation);
    let users = UserExecutor::new(pool).with_claims_keys(derive);
    Postgres::new(users, control)
}
