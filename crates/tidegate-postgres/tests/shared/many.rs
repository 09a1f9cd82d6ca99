//! Many concurrent users on few connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::{notes, ours, tenant, user};
use crate::fixture::Fixture;

const USERS: usize = 200;
const ROUNDS: usize = 167;

/// Reads what one user may see, repeatedly.
async fn one_user(fixture: Arc<Fixture>, number: usize, until: Instant) -> usize {
    let login = user(&fixture, number);
    let mut rounds = 0;
    while rounds < ROUNDS && Instant::now() < until {
        let read = ours("select owner, secret from notes").run(&fixture, &login);
        let expected = vec![vec![
            format!("\"{}\"", login.role),
            format!("\"s{number}\""),
        ]];
        assert_eq!(read.await.unwrap().values, expected);
        let other = number % USERS + 1;
        let by_key = ours("select secret from notes where id = :id").set([&other.to_string()]);
        assert!(
            by_key
                .run(&fixture, &login)
                .await
                .unwrap()
                .values
                .is_empty()
        );
        let amount = ours("select amount from salaries")
            .run(&fixture, &login)
            .await;
        match amount {
            Ok(rows) => assert!(number % 2 == 1 && rows.values == [["10"]], "{number}"),
            Err(error) => {
                assert_eq!(
                    (number % 2, error.sqlstate()),
                    (0, Some("42501")),
                    "{error}"
                );
            }
        }
        rounds += 1;
    }
    rounds
}

/// Each of 200 users sends 501 requests, and each request returns exactly the expected rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_users_see_their_own_rows_and_columns() {
    let (fixture, open) = tenant("shared_many", USERS).await;
    notes(&fixture, USERS).await;
    let until = Instant::now() + Duration::from_mins(4);
    let users = (1..=USERS).map(|number| {
        let one = tokio::spawn(one_user(fixture.clone(), number, until));
        async { one.await.unwrap() }
    });
    let rounds: usize = join_all(users).await.into_iter().sum();
    assert_eq!(rounds, USERS * ROUNDS, "slower than four minutes");
    assert_eq!(open.invalidated(), 0);
    // All requests ran on the authenticator's connections, some of them multiplexed.
    let counters = fixture.users.pool().stats().counters;
    assert!(counters.opened <= 40, "{counters:?}");
    assert!(fixture.users.multiplexed_requests() > 0);
    let others = fixture
        .value(
            "SELECT count(*)::text FROM pg_stat_activity \
             WHERE datname = 'shared_many' AND usename LIKE 'shared_many/u%'",
        )
        .await;
    assert_eq!(others, "0");
}
