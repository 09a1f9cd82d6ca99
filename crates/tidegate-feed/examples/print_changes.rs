//! Prints the changes of a table of a throw-away PostgreSQL, and how fast they arrive.
//!
//! An argument is a number of rows to insert in one transaction instead:
//!
//! `cargo run --release -p tidegate-feed --example print_changes -- 500000`

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;
use std::time::Instant;

use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_feed::{
    EventReceiver, Feed, FeedSettings, Item, Operations, QueueLimits, Selection, SubscribeRequest,
    event_queue,
};
use tidegate_pool::{OpenError, Pool, PoolKey};
use tidegate_postgres::{Credential, Credentials, Postgres, RoleConnector, UserExecutor};
use tidegate_service::ServiceConnections;
use tidegate_sql::{BoxFuture, DatabaseName, Login, RoleName, RoleUse};
use tidegate_wire::backoff::Jitter;
use tidegate_wire::{Config, StartupParameters};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Credentials that give every role the administrator's password, because the example has only that
/// role.
struct OnlyAdmin(Config);

impl Credentials for OnlyAdmin {
    fn of<'a>(&'a self, _: &'a PoolKey, _: bool) -> BoxFuture<'a, Result<Credential, OpenError>> {
        let password = self.0.admin_password.clone();
        let startup = StartupParameters::default();
        Box::pin(std::future::ready(Ok(Credential::new(password, startup))))
    }
}

fn feed(config: Config) -> Fallible<Feed> {
    let shared = Arc::new(config.clone());
    let control = Arc::new(ServiceConnections::new(shared.clone(), Jitter::none())?);
    let credentials = Arc::new(OnlyAdmin(config.clone()));
    let connector = RoleConnector::new(shared, credentials, control.clone());
    let settings = tidegate_pool::Settings::default();
    let pool = Pool::new(connector, settings, Jitter::none());
    let executor = Arc::new(Postgres::new(UserExecutor::new(pool), control));
    let log = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    Ok(Feed::new(Arc::new(log), executor, FeedSettings::default()))
}

#[tokio::main]
async fn main() -> Fallible<()> {
    let cluster = tidegate_embedded::testing::cluster();
    let url = cluster.url("postgres");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute(
            "SET synchronous_commit = local; CREATE TABLE boats (id int PRIMARY KEY, name text)",
        )
        .await?;
    let row = client
        .query_one("SELECT 'boats'::regclass::oid", &[])
        .await?;
    let mut config = Config::from_url(&cluster.socket_url("postgres"))?;
    config.control_database = DatabaseName::new("postgres");
    let feed = feed(config)?;
    let (sender, mut receiver) = event_queue(QueueLimits::default());
    let request = SubscribeRequest {
        login: Login {
            database: DatabaseName::new("postgres"),
            role: RoleName::new(cluster.admin_user()),
            role_use: RoleUse::User(1),
        },
        tag: 1,
        relation: row.get(0),
        operations: Operations::ALL,
        selection: Selection::of(["id", "name"]),
        predicate: None,
        after: None,
    };
    let _subscription = feed.subscribe(&sender, request).await?;
    match std::env::args().nth(1) {
        Some(count) => race(&client, &mut receiver, count.parse()?).await,
        None => show(&client, &mut receiver).await,
    }
}

async fn show(client: &tokio_postgres::Client, receiver: &mut EventReceiver) -> Fallible<()> {
    client
        .batch_execute(
            "INSERT INTO boats VALUES (1, 'Albatross'); UPDATE boats SET name = 'Kittiwake'; \
             DELETE FROM boats",
        )
        .await?;
    let mut events = 0;
    while events < 3
        && let Some(deliveries) = receiver.next().await
    {
        for delivery in deliveries {
            if let Item::Event {
                cursor,
                operation,
                row,
                ..
            } = delivery.item
            {
                println!("{cursor} {operation:?} {}", String::from_utf8_lossy(&row));
                events += 1;
            }
        }
    }
    Ok(())
}

async fn race(
    client: &tokio_postgres::Client,
    receiver: &mut EventReceiver,
    count: usize,
) -> Fallible<()> {
    let insert =
        format!("INSERT INTO boats SELECT i, 'boat' || i FROM generate_series(1, {count}) i");
    client.batch_execute(&insert).await?;
    let committed = Instant::now();
    let (mut events, mut first) = (0, None);
    while events < count
        && let Some(deliveries) = receiver.next().await
    {
        for delivery in deliveries {
            match delivery.item {
                Item::Event { .. } => events += 1,
                Item::Acknowledged { .. } => {}
                other => println!("{other:?} after {events} events"),
            }
        }
        first.get_or_insert_with(|| committed.elapsed());
    }
    println!(
        "{events} events; the first after {first:?}, the last after {:?}",
        committed.elapsed()
    );
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", peak.unwrap_or_default());
    Ok(())
}
