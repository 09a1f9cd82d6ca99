//! Describes a schema of a throw-away PostgreSQL.
//!
//! `cargo run -p tidegate-catalog --example describe_schema`

use std::io::Write as _;
use std::sync::Arc;

use tidegate_embedded::{Cluster, Settings};
use tidegate_postgres::Config;
use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::control::Control;
use tidegate_sql::{DatabaseName, Principal, Terms};

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

    let service = Control::new(
        Arc::new(Config::from_url(&cluster.admin_url())?),
        Jitter::none(),
    )?;
    let who = Principal::Catalog(DatabaseName::new("postgres"));
    let all = tidegate_catalog::describe_all(&service, &who, &Terms::default()).await?;
    writeln!(std::io::stdout(), "{all}")?;

    drop((admin, service));
    cluster.stop().await?;
    Ok(())
}
