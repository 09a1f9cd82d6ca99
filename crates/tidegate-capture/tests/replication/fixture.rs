//! A database whose change log is read.

use std::time::Duration;

use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_changelog::{
    Captured, ChangeLog as _, Demand, LogIdentity, LogMessage, LogPosition, LogResult, LogStart,
    LogStream,
};
use tidegate_embedded::{Cluster, testing};
use tidegate_sql::DatabaseName;
use tidegate_testkit::{connect, database_on, oid, text};
use tidegate_wire::Config;
use tokio_postgres::Client;

pub(crate) struct Fixture {
    pub(crate) database: DatabaseName,
    pub(crate) log: Replication,
    pub(crate) sql: Client,
    pub(crate) cluster: &'static Cluster,
}

/// The configuration with the administrator's login, and with a control database that exists.
pub(crate) fn config(cluster: &Cluster) -> Config {
    tidegate_testkit::config(&cluster.socket_url("postgres"), "postgres")
}

impl Fixture {
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(testing::cluster(), name, ReplicationSettings::default()).await
    }

    pub(crate) async fn on(
        cluster: &'static Cluster,
        name: &str,
        settings: ReplicationSettings,
    ) -> Self {
        Self::at(cluster, config(cluster), name, settings).await
    }

    /// A fixture whose log is read with `config`.
    pub(crate) async fn at(
        cluster: &'static Cluster,
        config: Config,
        name: &str,
        settings: ReplicationSettings,
    ) -> Self {
        Self {
            database: DatabaseName::new(name),
            log: Replication::new(config.clone(), config, None, settings),
            sql: database_on(cluster, name, "").await,
            cluster,
        }
    }

    /// Opens another session.
    pub(crate) async fn session(&self) -> Client {
        connect(&self.cluster.url(self.database.as_str())).await
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.sql.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn value(&self, query: &str) -> String {
        text(&self.sql, query).await
    }

    pub(crate) async fn oid(&self, table: &str) -> u32 {
        oid(&self.sql, table).await
    }

    pub(crate) async fn open(
        &self,
        after: Option<(LogIdentity, LogPosition)>,
    ) -> LogResult<Box<dyn LogStream>> {
        let start = match after {
            Some((log, position)) => LogStart::At { log, position },
            None => LogStart::Now,
        };
        self.log.open(&self.database, start).await
    }

    pub(crate) async fn capture(
        &self,
        table: &str,
        changes: bool,
        old_rows: bool,
    ) -> LogResult<Captured> {
        let demand = self.demand(table, changes, old_rows).await;
        self.log.capture(&self.database, &demand).await
    }

    pub(crate) async fn demand(&self, table: &str, changes: bool, old_rows: bool) -> Demand {
        Demand {
            relation: self.oid(table).await,
            changes,
            old_rows,
            timeout: Duration::from_secs(20),
        }
    }

    /// The present replica identity of a table.
    pub(crate) async fn identity(&self, table: &str) -> String {
        self.value(&format!(
            "SELECT relreplident::text FROM pg_class WHERE oid = '{table}'::regclass"
        ))
        .await
    }
}

/// Collects what a stream returns.
pub(crate) struct StreamReader {
    pub(crate) stream: Box<dyn LogStream>,
    /// The positions of the ends of transactions that changed a captured table. Before PostgreSQL
    /// 15 empty transactions are reported too.
    pub(crate) commits: Vec<LogPosition>,
    empty: bool,
    pub(crate) reached: LogPosition,
    /// The last value of each inserted and deleted row, as text.
    pub(crate) rows: Vec<String>,
}

impl StreamReader {
    pub(crate) fn new(stream: Box<dyn LogStream>) -> Self {
        Self {
            stream,
            commits: Vec::new(),
            empty: true,
            reached: LogPosition::default(),
            rows: Vec::new(),
        }
    }

    pub(crate) async fn step(&mut self) -> LogResult<()> {
        let mut batch = Vec::new();
        let next = self.stream.next(&mut batch);
        tokio::time::timeout(Duration::from_secs(20), next)
            .await
            .expect("the stream is silent")?;
        for message in batch {
            match message {
                LogMessage::Reached(position) => {
                    self.reached = self.reached.max(position);
                    self.stream.confirm(position);
                }
                LogMessage::Change(bytes) => match bytes[0] {
                    b'C' => {
                        let end = bytes[10..18].try_into().unwrap();
                        let end = LogPosition(u64::from_be_bytes(end));
                        self.reached = self.reached.max(end);
                        if !std::mem::replace(&mut self.empty, true) {
                            self.commits.push(end);
                        }
                    }
                    b'I' | b'U' | b'D' => {
                        self.empty = false;
                        self.rows.push(String::from_utf8_lossy(&bytes).into_owned());
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Reads until this many transactions have arrived.
    pub(crate) async fn read(&mut self, transactions: usize) {
        while self.commits.len() < transactions {
            self.step().await.unwrap();
        }
    }

    /// Reads until the stream has reached a position.
    pub(crate) async fn reach(&mut self, position: LogPosition) {
        while self.reached < position {
            self.stream.request_position();
            self.step().await.unwrap();
        }
    }
}
