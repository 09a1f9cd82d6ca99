//! Tests the pool with PostgreSQL: how many logins it saves, and a server whose connections other
//! clients use up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_embedded::{Cluster, testing};
use tidegate_pool::{Counters, Settings};
use tidegate_postgres::scram_verifier;
use tidegate_sql::{DatabaseName, Error, Login, RoleName, RoleUse};
use tidegate_testkit::Random;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};

use crate::fixture::{Fixture, Sql, password};

/// Creates more users; returns their logins.
async fn users(fixture: &Fixture, count: usize) -> Vec<Login> {
    let mut logins = Vec::new();
    for number in 0..count {
        let role = format!("{}/u{number}", fixture.name);
        let verifier = scram_verifier(&password(&role), &[3; 16]);
        let make = format!(
            "CREATE ROLE \"{role}\" LOGIN PASSWORD '{verifier}';
             GRANT CONNECT ON DATABASE \"{}\" TO \"{role}\"",
            fixture.name
        );
        fixture.admin.batch_execute(&make).await.unwrap();
        logins.push(Login {
            database: DatabaseName::new(&fixture.name),
            role: RoleName::new(role),
            role_use: RoleUse::User(1),
        });
    }
    logins
}

/// Runs sixteen callers with `requests` requests each, as users drawn at random. Passes every
/// result to `answered`.
async fn ask(
    fixture: &Arc<Fixture>,
    logins: &[Login],
    requests: usize,
    answered: fn(Result<String, Error>),
) {
    ask_with_pauses(fixture, logins, requests, move |response| {
        answered(response);
        None
    })
    .await;
}

/// As [`ask`]. `answered` returns how long the caller waits before its next request.
async fn ask_with_pauses(
    fixture: &Arc<Fixture>,
    logins: &[Login],
    requests: usize,
    answered: impl Fn(Result<String, Error>) -> Option<Duration> + Copy + Send + 'static,
) {
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let (fixture, logins) = (fixture.clone(), logins.to_vec());
        callers.spawn(async move {
            let mut random = Random::new(caller);
            for _ in 0..requests {
                let login = random.pick(&logins);
                let rows = Sql::new("select session_user::text as who").run(&fixture, login);
                let response = rows.await.map(|rows| rows.values[0][0].clone());
                if let Ok(who) = &response {
                    assert_eq!(*who, format!("\"{}\"", login.role));
                }
                if let Some(pause) = answered(response) {
                    sleep(pause).await;
                }
            }
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
}

fn counters(fixture: &Fixture) -> Counters {
    fixture.users.pool().stats().counters
}

/// The number of sessions that PostgreSQL has counted in the database (from version 14 on).
async fn sessions(fixture: &Fixture) -> Option<i64> {
    let version = testing::cluster().version().major;
    if version < 14 {
        return None;
    }
    let query = "SELECT sessions FROM pg_stat_database WHERE datname = $1";
    let row = fixture
        .admin
        .query_one(query, &[&fixture.name])
        .await
        .unwrap();
    Some(row.get(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_users_at_random_log_in_about_once_each() {
    let settings = Settings::default();
    let fixture = Fixture::on(testing::cluster(), "pool_users", settings).await;
    let fixture = Arc::new(fixture);
    let logins = users(&fixture, 32).await;
    ask(&fixture, &logins, 200, |response| drop(response.unwrap())).await;
    let seen = counters(&fixture);
    assert!(seen.opened < 32 * 3, "{seen:?}");
    assert_eq!(seen.evicted, 0, "{seen:?}");
    if let Some(sessions) = sessions(&fixture).await {
        // The sessions of the administrator and of the service are counted too.
        assert!(sessions < 32 * 3 + 20, "{sessions} sessions");
    }
}

/// The pool is smaller than the number of users, so it needs logins, but not without bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_on_one_server_keep_thirty_two_users_warm() {
    let settings = Settings {
        capacity: 38,
        ..Settings::default()
    };
    let fixture = Fixture::on(testing::cluster(), "pool_half", settings).await;
    let fixture = Arc::new(fixture);
    let logins = users(&fixture, 32).await;
    ask(&fixture, &logins, 200, |response| drop(response.unwrap())).await;
    let seen = counters(&fixture);
    assert!(seen.opened < 32 * 4, "{seen:?}");
}

/// Opens as many connections of ordinary roles as PostgreSQL allows.
async fn take_all(cluster: &Cluster, role: &str) -> Vec<Client> {
    let mut config: tokio_postgres::Config = cluster.url(role).parse().unwrap();
    config.user(role).password(password(role));
    let mut taken = Vec::new();
    loop {
        match config.connect(NoTls).await {
            Ok((client, connection)) => {
                tokio::spawn(connection);
                taken.push(client);
            }
            Err(error) => {
                let state = error.code().map(tokio_postgres::error::SqlState::code);
                assert_eq!(state, Some("53300"), "{error}");
                return taken;
            }
        }
    }
}

async fn full_server(name: &str, pool: Settings) -> (Arc<Fixture>, Vec<Client>) {
    let settings = testing::settings()
        .with("max_connections", "30")
        .with("superuser_reserved_connections", "10");
    let cluster = Cluster::start(settings).await.unwrap();
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let fixture = Arc::new(Fixture::on(cluster, name, pool).await);
    let taken = take_all(cluster, name).await;
    (fixture, taken)
}

static SERVED: AtomicUsize = AtomicUsize::new(0);
static UNAVAILABLE: AtomicUsize = AtomicUsize::new(0);

/// Other clients leave the pool two of its twenty connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_share_what_others_leave_of_max_connections() {
    let settings = Settings {
        capacity: 20,
        ..Settings::default()
    };
    let (fixture, mut taken) = full_server("pool_scarce", settings).await;
    let logins = users(&fixture, 8).await;
    taken.truncate(taken.len() - 2);
    // PostgreSQL frees a connection some time after its client has closed it.
    let held = "SELECT count(*)::text FROM pg_stat_activity WHERE usename = 'pool_scarce'";
    while fixture.value(held).await != taken.len().to_string() {}
    let start = Instant::now();
    ask_with_pauses(&fixture, &logins, 20, |response| {
        let (count, pause) = match response {
            Ok(_) => (&SERVED, None),
            Err(Error::PoolTimeout { retry_after } | Error::Unavailable { retry_after, .. }) => {
                (&UNAVAILABLE, Some(retry_after))
            }
            Err(error) => panic!("{error:?}"),
        };
        count.fetch_add(1, Ordering::Relaxed);
        pause
    })
    .await;
    let (served, unavailable) = (
        SERVED.load(Ordering::Relaxed),
        UNAVAILABLE.load(Ordering::Relaxed),
    );
    let seen = counters(&fixture);
    // An evicted connection may still be open in PostgreSQL when the pool opens the next one. Then
    // each caller may be refused once.
    assert!(
        unavailable * 5 < served,
        "{served} and {unavailable}: {seen:?}"
    );
    // The pool makes one attempt a second, besides those that were running when it reached the
    // limit.
    let attempts = start.elapsed().as_secs() + 16;
    assert!(seen.open_failures <= attempts, "{seen:?}");
    // The other clients disconnect.
    drop(taken);
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.users.pool().stats().held < 6 {
        assert!(Instant::now() < deadline, "the pool does not grow again");
        ask(&fixture, &logins, 5, |response| drop(response.unwrap())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_any_connection_left_is_reported_soon_and_found_again() {
    let settings = Settings {
        capacity: 20,
        ..Settings::default()
    };
    let (fixture, taken) = full_server("pool_full", settings).await;
    let logins = users(&fixture, 8).await;
    let start = Instant::now();
    ask(&fixture, &logins, 50, |response| {
        let error = response.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    })
    .await;
    let (time, seen) = (start.elapsed(), counters(&fixture));
    assert!(time < Duration::from_secs(5), "800 refusals took {time:?}");
    assert!(seen.open_failures <= time.as_secs() + 16, "{seen:?}");
    drop(taken);
    let deadline = Instant::now() + Duration::from_secs(20);
    let who = || Sql::new("select 1 as one").run(&fixture, &logins[0]);
    while let Err(error) = who().await {
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(Instant::now() < deadline, "{error:?}");
        sleep(Duration::from_millis(100)).await;
    }
}
