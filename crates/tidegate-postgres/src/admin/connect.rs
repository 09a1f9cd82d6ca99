//! A connection of the administrator through tokio-postgres.

use tokio_postgres::{Client, NoTls};

use crate::config::{Config, Target};

pub(super) async fn connect(config: &Config, database: &str) -> Result<Client, tokio_postgres::Error> {
    let mut settings = tokio_postgres::Config::new();
    match &config.target {
        Target::Tcp { host, port } => settings.host(host).port(*port),
        Target::Unix { directory, port } => settings.host_path(directory).port(*port),
    };
    settings
        .user(&config.admin_role)
        .password(config.admin_password.reveal())
        .dbname(database)
        .application_name("tidegate")
        .connect_timeout(config.connect_timeout);
    let (client, connection) = settings.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}
