//! Describes a schema of a throw-away PostgreSQL.
//!
//! `cargo run -p tidegate-catalog --example describe_schema`

use std::io::Write as _;
use std::sync::Arc;

use tidegate_catalog::CatalogCache;
use tidegate_embedded::{Cluster, Settings};
use tidegate_service::ServiceConnections;
use tidegate_sql::{DatabaseName, Login, QueryOptions, RoleName, RoleUse};
use tidegate_wire::Config;
use tidegate_wire::backoff::Jitter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start(Settings::temporary()).await?;
    let (admin, connection) =
        tokio_postgres::connect(&cluster.admin_url(), tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    admin
        .batch_execute(
            "create table ships (id int primary key, name text not null, ports text[]); \
             comment on table ships is 'what comes in with the tide'",
        )
        .await?;

    let service = Arc::new(ServiceConnections::new(
        Arc::new(Config::from_url(&cluster.admin_url())?),
        Jitter::none(),
    )?);
    let catalogs = CatalogCache::new(service, Arc::new(()));
    let login = Login {
        database: DatabaseName::new("postgres"),
        role: RoleName::new("postgres"),
        role_use: RoleUse::User(1),
    };
    let schemas = catalogs.schemas(&login, &QueryOptions::default()).await?;
    writeln!(
        std::io::stdout(),
        "{}",
        tidegate_catalog::describe_all(&schemas)
    )?;

    drop((admin, catalogs));
    cluster.stop().await?;
    Ok(())
}
