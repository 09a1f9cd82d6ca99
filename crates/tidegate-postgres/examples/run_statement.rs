//! Runs a statement as a login role on a throw-away PostgreSQL, without the rest of the service.
//!
//! `cargo run -p tidegate-postgres --example run_statement`

use std::io::Write;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_pool::{OpenError, Pool, PoolKey, Settings};
use tidegate_postgres::{Credential, Credentials, RoleConnector, UserExecutor};
use tidegate_sql::{
    BoundStatement, BoxFuture, DatabaseName, Flow, Login, QueryOptions, Result, RoleName, RoleUse,
    RowSink, Statement,
};
use tidegate_values::codec::ValueWriter;
use tidegate_values::{Column, Parameter, RawRow};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{
    Backend, BackendTerminator, Config, Secret, StartupParameters, TerminateOutcome,
};

/// Credentials of the role `reader`, with a fixed password. A service derives passwords by
/// `role_password`.
struct OneRole;

impl Credentials for OneRole {
    fn of<'a>(
        &'a self,
        _key: &'a PoolKey,
        _shared: bool,
    ) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let password = Secret::new("reader's password");
        let startup = StartupParameters::default();
        Box::pin(std::future::ready(Ok(Credential::new(password, startup))))
    }
}

/// A terminator that terminates nothing. A service uses `tidegate_service::ServiceConnections`.
struct Patience;

impl BackendTerminator for Patience {
    fn terminate(&self, _backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        Box::pin(std::future::ready(TerminateOutcome::Unknown))
    }
}

/// Writes each row as a line of JSON values.
struct Lines(Vec<ValueWriter>, std::io::Stdout);

impl RowSink for Lines {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.0 = columns.iter().map(ValueWriter::new).collect();
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let mut line = BytesMut::new();
        for (writer, value) in self.0.iter().zip(row.values()) {
            match value {
                Some(raw) => writer.json(raw, &mut line)?,
                None => line.extend_from_slice(b"null"),
            }
            line.extend_from_slice(b" ");
        }
        writeln!(self.1, "{}", String::from_utf8_lossy(&line))
            .map_err(|_| tidegate_sql::Error::SinkClosed)?;
        Ok(Flow::Continue)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster =
        tidegate_embedded::Cluster::start(tidegate_embedded::Settings::temporary()).await?;
    let (admin, connection) =
        tokio_postgres::connect(&cluster.admin_url(), tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    admin
        .batch_execute("CREATE ROLE reader LOGIN PASSWORD 'reader''s password'")
        .await?;

    let config = Arc::new(Config::from_url(&cluster.socket_url("postgres"))?);
    let connector = RoleConnector::new(config, Arc::new(OneRole), Arc::new(Patience));
    let pool = Pool::new(connector, Settings::default(), Jitter::none());
    let roles = UserExecutor::new(pool);

    let login = Login {
        database: DatabaseName::new("postgres"),
        role: RoleName::new("reader"),
        role_use: RoleUse::User(1),
    };
    let text = "select current_user, :n::int * 2 as twice, array['a', null] as list";
    let statement = BoundStatement {
        statement: Arc::new(Statement::parse(text)?),
        hints: vec![None],
        formats: vec![None],
        sets: vec![vec![Parameter::Json("21".into())], vec![Parameter::Null]],
        listed: true,
        places: Vec::new(),
    };
    let mut lines = Lines(Vec::new(), std::io::stdout());
    roles
        .query(&login, &statement, &QueryOptions::default(), &mut lines)
        .await?;
    cluster.stop().await?;
    Ok(())
}
