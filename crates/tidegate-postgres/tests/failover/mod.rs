//! Tests a primary with a standby, and the promotion of the standby.

use std::time::Duration;

use tidegate_embedded::{Cluster, Shutdown, testing};
use tidegate_pool::Settings;
use tidegate_sql::{Error, Login};
use tidegate_testkit::{caught_up, eventually};
use tidegate_wire::{Config, ConnectError};
use tokio::time::Instant;

use crate::fixture::{Fixture, Sql, connect};

/// A primary with a standby. The fixture's roles and database are on both.
struct Pair {
    primary: &'static Cluster,
    standby: Cluster,
}

impl Pair {
    async fn new() -> Self {
        let primary = Cluster::start(testing::settings()).await.unwrap();
        let standby = primary.start_standby(testing::settings()).await.unwrap();
        Self {
            primary: Box::leak(Box::new(primary)),
            standby,
        }
    }

    /// A URL of the administrator with these ports.
    fn config(&self, ports: &[u16], parameters: &str) -> Config {
        let hosts: Vec<_> = ports
            .iter()
            .map(|port| format!("127.0.0.1:{port}"))
            .collect();
        let (password, hosts) = (self.primary.admin_password(), hosts.join(","));
        let url = format!("postgresql://postgres:{password}@{hosts}/postgres{parameters}");
        Config::from_url(&url).unwrap()
    }

    /// A fixture that connects with `config`, with a table that the owner writes to.
    async fn fixture(&self, name: &str, config: Config) -> Fixture {
        let fixture = Fixture::at(self.primary, name, Settings::default(), config).await;
        let owner = format!("CREATE TABLE kept (id int8); ALTER TABLE kept OWNER TO \"{name}\"");
        let inside = connect(&fixture.url()).await;
        inside.batch_execute(&owner).await.unwrap();
        caught_up(self.primary, &self.standby).await;
        fixture
    }

    async fn fail_over(&self) {
        self.primary.halt(Shutdown::Kill).await.unwrap();
        self.standby.promote().await.unwrap();
    }
}

async fn insert(fixture: &Fixture, login: &Login, id: u32) -> Result<(), Error> {
    let insert = format!("INSERT INTO kept VALUES ({id})");
    Sql::new(&insert).run(fixture, login).await.map(drop)
}

async fn ids(fixture: &Fixture) -> String {
    let read = "SELECT string_agg(id::text, ',' ORDER BY id) FROM kept";
    let rows = Sql::new(read).run(fixture, &fixture.owner()).await.unwrap();
    rows.values[0][0].trim_matches('"').to_owned()
}

#[tokio::test]
async fn writes_go_to_the_primary_whatever_the_order_and_on_after_a_promotion() {
    let pair = Pair::new().await;
    let ports = [pair.standby.port(), pair.primary.port()];
    let fixture = pair.fixture("failover", pair.config(&ports, "")).await;
    let owner = fixture.owner();
    insert(&fixture, &owner, 1).await.unwrap();
    caught_up(pair.primary, &pair.standby).await;

    pair.primary.halt(Shutdown::Kill).await.unwrap();
    // The only server is a standby, so nothing can be written.
    for _ in 0..3 {
        match insert(&fixture, &owner, 2).await {
            Err(Error::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    pair.standby.promote().await.unwrap();
    let promoted = Instant::now();
    eventually("writes work again", async || {
        insert(&fixture, &owner, 3).await.is_ok()
    })
    .await;
    let waited = promoted.elapsed();
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    assert_eq!(ids(&fixture).await, "1,3");
}

#[tokio::test]
async fn a_standby_at_the_only_address_is_an_outage_until_it_is_promoted() {
    let pair = Pair::new().await;
    let config = pair.config(&[pair.standby.port()], "");
    let fixture = pair.fixture("demoted", config).await;
    let owner = fixture.owner();
    for _ in 0..2 {
        match insert(&fixture, &owner, 1).await {
            Err(Error::Unavailable { source, .. }) => {
                let text = source.unwrap().to_string();
                assert!(text.contains("25006"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Connections to the standby are not used again, since they would refuse writes again.
    eventually("no connection is kept", async || {
        fixture.users.pool().stats().held == 0
    })
    .await;
    pair.fail_over().await;
    insert(&fixture, &owner, 2).await.unwrap();
    assert_eq!(ids(&fixture).await, "2");
}

#[tokio::test]
async fn a_role_that_may_only_read_gets_postgresqls_error() {
    let pair = Pair::new().await;
    let ports = [pair.primary.port(), pair.standby.port()];
    let fixture = pair.fixture("reader", pair.config(&ports, "")).await;
    let only_read = "ALTER ROLE \"reader\" SET default_transaction_read_only = on";
    fixture.admin.batch_execute(only_read).await.unwrap();
    match insert(&fixture, &fixture.owner(), 1).await {
        Err(Error::Rejected(said)) => assert_eq!(said.sqlstate, "25006"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_administrators_connections_avoid_the_standby_too() {
    let pair = Pair::new().await;
    // No server listens on this port, so it refuses every connection.
    let closed = 1;
    let ports = [closed, pair.standby.port(), pair.primary.port()];
    let config = pair.config(&ports, "");
    let client = tidegate_service::open(&config, &config.admin_database).await;
    let client = client.unwrap();
    client
        .batch_execute("CREATE TABLE public.made ()")
        .await
        .unwrap();

    let config = pair.config(&ports[..2], "");
    let opened = tidegate_service::open(&config, &config.admin_database).await;
    let error = opened.unwrap_err();
    assert!(matches!(error, ConnectError::NoHost(_)), "{error:?}");
    let text = error.to_string();
    for part in [
        format!("127.0.0.1:{closed}: "),
        format!("{}: ", ports[1]),
        "standby".into(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    let any = pair.config(&[pair.standby.port(), closed], "?target_session_attrs=any");
    tidegate_service::open(&any, &any.admin_database)
        .await
        .unwrap();
}
