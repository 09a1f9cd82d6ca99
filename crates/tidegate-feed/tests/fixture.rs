//! The fixture: a database with roles, and a feed of it.

mod failing_log;
mod listener;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_capture::{Outbox as OutboxLog, OutboxSettings, Replication, ReplicationSettings};
use tidegate_catalog::{CatalogCache, Schemas};
use tidegate_changelog::ChangeLog;
use tidegate_embedded::{Cluster, testing};
use tidegate_feed::{
    Error, Feed, FeedSettings, Operations, Predicate, Selection, SubscribeRequest,
};
use tidegate_filter::{Filter, Json};
use tidegate_pool::Settings;
use tidegate_postgres::Credentials;
use tidegate_sql::{DatabaseName, Executor, Login, QueryOptions, RoleName, RoleUse};
use tidegate_testkit::{Passwords, connect_as, create_role, database_on, oid, password};
use tidegate_wire::Config;
use tokio_postgres::Client;

use crate::SOURCE;
pub(crate) use failing_log::{FailingLog, Failure};
pub(crate) use listener::{Listener, listen, listen_within};

/// With this setting, a commit does not wait for the standby that a test configures.
const LOCAL_COMMIT: &str = "SET synchronous_commit = local";
/// The deadline for the events that a test waits for.
const SOON: Duration = Duration::from_secs(30);

pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) feed: Feed,
    /// A session of the administrator whose commits do not wait for a standby.
    pub(crate) sql: Client,
    cluster: &'static Cluster,
    executor: Arc<dyn Executor>,
}

/// The source from which a feed reads changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogSource {
    Log,
    Outbox,
}

/// The settings of a fixture.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) cluster: &'static Cluster,
    pub(crate) source: LogSource,
    pub(crate) settings: FeedSettings,
    pub(crate) replication: ReplicationSettings,
    pub(crate) outbox: OutboxSettings,
    /// Whether the feed can log in as the owners of tables.
    pub(crate) owners: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cluster: shared_cluster(),
            source: SOURCE,
            settings: FeedSettings::default(),
            // The retention window moves as soon as a test has passed it.
            replication: ReplicationSettings {
                advance_interval: Duration::ZERO,
                ..ReplicationSettings::default()
            },
            outbox: OutboxSettings::default(),
            owners: true,
        }
    }
}

impl Setup {
    /// A setup with these feed settings.
    pub(crate) fn with(settings: FeedSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// A setup whose feed does not poll or recheck, so that privileges are read again only before
    /// changes.
    pub(crate) fn without_polls() -> Self {
        let never = Duration::from_hours(1);
        Self::with(FeedSettings {
            recheck_interval: never,
            poll_interval: never,
            ..FeedSettings::default()
        })
    }

    /// A setup whose feed checks privileges at this interval.
    pub(crate) fn rechecked_every(recheck_interval: Duration) -> Self {
        Self::with(FeedSettings {
            recheck_interval,
            ..FeedSettings::default()
        })
    }
}

/// A cluster for one test, which runs until the process ends.
pub(crate) fn own_cluster() -> &'static Cluster {
    own_cluster_with(&[])
}

/// A cluster for one test, with further settings of PostgreSQL.
pub(crate) fn own_cluster_with(further: &[(&str, &str)]) -> &'static Cluster {
    let levels = [(LogSource::Log, "logical"), (LogSource::Outbox, "replica")];
    let (_, level) = levels.iter().find(|(source, _)| *source == SOURCE).unwrap();
    let settings = testing::settings().with("wal_level", *level);
    let settings = settings.with("max_connections", "300");
    let settings = further.iter().fold(settings, |settings, (name, value)| {
        settings.with(*name, *value)
    });
    Box::leak(Box::new(Cluster::start_blocking(&settings).unwrap()))
}

/// The cluster of all tests of this process.
fn shared_cluster() -> &'static Cluster {
    static SHARED: OnceLock<&Cluster> = OnceLock::new();
    match SOURCE {
        LogSource::Log => testing::cluster(),
        LogSource::Outbox => SHARED.get_or_init(own_cluster),
    }
}

impl Fixture {
    /// A database with the roles `<name>`, which owns it, and `<name>/alice`.
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, &Setup::default()).await
    }

    pub(crate) async fn with(name: &str, setup: &Setup) -> Self {
        let sql = database_on(setup.cluster, name, LOCAL_COMMIT).await;
        for role in [name.to_owned(), format!("{name}/alice")] {
            create_role(&sql, &role, "").await;
        }
        sql.batch_execute(&format!(
            "GRANT CREATE ON DATABASE \"{name}\" TO \"{name}\";
             ALTER SCHEMA public OWNER TO \"{name}\";
             GRANT USAGE ON SCHEMA public TO PUBLIC"
        ))
        .await
        .unwrap();
        Self {
            name: name.to_owned(),
            feed: node(setup),
            sql,
            cluster: setup.cluster,
            executor: executor(setup),
        }
    }

    /// Makes the first subscription. Retries until PostgreSQL has opened the stream, for which it
    /// waits for the open transactions of all tests.
    pub(crate) async fn first(&self, table: &str, columns: &[&str]) -> Listener {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            match self.subscribe(self.request(table, columns).await).await {
                Ok(listener) => return listener,
                Err(Error::Timeout { .. } | Error::Unavailable(_))
                    if tokio::time::Instant::now() < deadline => {}
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Creates a login role. `options` are further options of `CREATE ROLE`.
    pub(crate) async fn role(&self, user: &str, options: &str) {
        create_role(&self.sql, &format!("{}{user}", self.name), options).await;
    }

    /// The major version of the server.
    pub(crate) fn version(&self) -> u16 {
        self.cluster.version().major
    }

    pub(crate) async fn session(&self) -> Client {
        connect(&self.cluster.url(&self.name)).await
    }

    /// A connection that logged in as a user.
    pub(crate) async fn session_of(&self, user: &str) -> Client {
        let role = format!("{}{user}", self.name);
        let url = self.cluster.url(&self.name);
        connect_as(&url, &role, &password(&role)).await.unwrap()
    }

    pub(crate) async fn run(&self, sql: &str) {
        self.sql.batch_execute(sql).await.unwrap();
    }

    /// Waits until PostgreSQL has sent everything that was committed before to the streams of the
    /// database.
    pub(crate) async fn wait_until_sent(&self) {
        let end = "SELECT pg_current_wal_flush_lsn()::text";
        let end: String = self.sql.query_one(end, &[]).await.unwrap().get(0);
        let is_sent = "SELECT coalesce(bool_and(r.sent_lsn >= $1::text::pg_lsn), true)
            FROM pg_stat_replication r JOIN pg_stat_activity a USING (pid)
            WHERE a.datname = current_database()";
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let row = self.sql.query_one(is_sent, &[&end]).await.unwrap();
            if row.get::<_, bool>(0) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "not sent");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Breaks the streams of the database. The streams of an outbox are sessions with a certain
    /// `application_name`.
    pub(crate) async fn break_streams(&self) {
        self.run(match SOURCE {
            LogSource::Log => {
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
                 WHERE database = current_database() AND active"
            }
            LogSource::Outbox => {
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name = 'tidegate outbox reader'"
            }
        })
        .await;
    }

    pub(crate) async fn oid(&self, table: &str) -> u32 {
        oid(&self.sql, table).await
    }

    /// The login of a user. The empty name means the owner of the database, who owns no table.
    pub(crate) fn login(&self, user: &str) -> Login {
        Login {
            database: DatabaseName::new(&self.name),
            role: RoleName::new(format!("{}{user}", self.name)),
            role_use: RoleUse::User(1),
        }
    }

    /// A filter on a table as a user sees it.
    pub(crate) async fn filter(
        &self,
        user: &str,
        table: &str,
        json: &str,
    ) -> tidegate_filter::Result<Predicate> {
        let login = self.login(user);
        let schemas = load(&self.executor, &login).await;
        let schema = schemas
            .iter()
            .find(|schema| schema.name() == "public")
            .unwrap();
        let relation = schema.find(table).unwrap();
        let json = Json::Text(json.into());
        let filter = Filter::parse(&json, schema, relation, "where")?;
        Predicate::new(&filter, &schema[relation])
    }

    /// A request of alice.
    pub(crate) async fn request(&self, table: &str, columns: &[&str]) -> SubscribeRequest {
        SubscribeRequest {
            login: self.login("/alice"),
            tag: 1,
            relation: self.oid(table).await,
            operations: Operations::ALL,
            selection: Selection::of(columns.iter().copied()),
            predicate: None,
            after: None,
        }
    }

    pub(crate) async fn subscribe(&self, request: SubscribeRequest) -> Result<Listener, Error> {
        listen(&self.feed, request).await
    }

    /// A listener to the changes of a table that pass a filter.
    pub(crate) async fn some(&self, table: &str, filter: &str) -> Result<Listener, Error> {
        let mut request = self.request(table, &["id"]).await;
        request.predicate = Some(self.filter("/alice", table, filter).await.unwrap());
        self.subscribe(request).await
    }

    /// Creates a table `t` with a policy `p` that lets every row through, and a listener to it.
    pub(crate) async fn table_with_policy(&self) -> Listener {
        self.run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true)",
        )
        .await;
        let mut alice = self.all("t", &["id"]).await;
        self.run("INSERT INTO t VALUES (1)").await;
        assert_eq!(alice.event().await, "+{\"id\":1}");
        alice
    }

    /// A listener to every change of a table.
    pub(crate) async fn all(&self, table: &str, columns: &[&str]) -> Listener {
        self.subscribe(self.request(table, columns).await)
            .await
            .unwrap()
    }
}

/// A separate feed, like that of another node.
pub(crate) fn node(setup: &Setup) -> Feed {
    node_with(setup, executor(setup))
}

/// A feed that queries `executor`.
pub(crate) fn node_with(setup: &Setup, executor: Arc<dyn Executor>) -> Feed {
    Feed::new(change_log(setup), executor, setup.settings.clone())
}

/// The change log of a cluster.
pub(crate) fn change_log(setup: &Setup) -> Arc<dyn ChangeLog> {
    let config = config(setup);
    let credentials: Arc<dyn Credentials> = Arc::new(Passwords::new(setup.cluster));
    let owners = setup.owners.then_some(credentials);
    match setup.source {
        LogSource::Log => Arc::new(Replication::new(
            config.clone(),
            config,
            owners,
            setup.replication.clone(),
        )),
        LogSource::Outbox => Arc::new(OutboxLog::new(config, owners, setup.outbox.clone())),
    }
}

/// The configuration with the administrator's login, and with a control database that exists.
pub(crate) fn config(setup: &Setup) -> Config {
    tidegate_testkit::config(&setup.cluster.socket_url("postgres"), "postgres")
}

pub(crate) fn executor(setup: &Setup) -> Arc<dyn Executor> {
    executor_with(setup, Settings::default())
}

/// An executor whose pool has these limits.
pub(crate) fn executor_with(setup: &Setup, settings: Settings) -> Arc<dyn Executor> {
    let executor = tidegate_testkit::executor_with(setup.cluster, config(setup), settings);
    Arc::new(executor)
}

/// The schemas as a role sees them.
async fn load(executor: &Arc<dyn Executor>, login: &Login) -> Schemas {
    let catalogs = CatalogCache::new(executor.clone(), Arc::new(()));
    catalogs
        .schemas(login, &QueryOptions::default())
        .await
        .unwrap()
}

pub(crate) async fn connect(url: &str) -> Client {
    let client = tidegate_testkit::connect(url).await;
    client.batch_execute(LOCAL_COMMIT).await.unwrap();
    client
}
