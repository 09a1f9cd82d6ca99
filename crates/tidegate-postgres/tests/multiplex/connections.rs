//! Tests when a multiplexed connection is opened and closed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_pool::Settings;
use tidegate_sql::{Error, Login};

use super::{Readers, fill, multiplexed_fixture, read, read_all, roomy, share};
use crate::fixture::{Fixture, Sql};

#[tokio::test]
async fn nothing_is_shared_where_that_is_switched_off() {
    let settings = Settings {
        multiplex: false,
        ..roomy()
    };
    let cluster = tidegate_embedded::testing::cluster();
    let fixture = Arc::new(Fixture::on(cluster, "multiplex_off", settings).await);
    fill(&fixture).await;
    for _ in 0..20 {
        read_all(&fixture, &fixture.owner()).await;
    }
    assert_eq!(fixture.users.multiplexed_requests(), 0);
}

#[tokio::test]
async fn the_connection_goes_back_when_others_need_it() {
    let settings = Settings {
        per_role: 2,
        capacity: 4,
        wait: Duration::from_secs(5),
        ..Settings::default()
    };
    let cluster = tidegate_embedded::testing::cluster();
    let fixture = Arc::new(Fixture::on(cluster, "multiplex_scarce", settings).await);
    fill(&fixture).await;
    let owner = fixture.owner();
    let readers = Readers::start(&fixture, &owner);
    for _ in 0..20 {
        // Two concurrent writers need both connections of the role, so the multiplexed one must be
        // returned to the pool.
        let write = || {
            Sql::new(
                "insert into items values (1000 + random() * 100000000, 'x') on conflict do nothing",
            )
        };
        let both = tokio::join!(write().run(&fixture, &owner), write().run(&fixture, &owner));
        both.0.unwrap();
        both.1.unwrap();
    }
    let alice = fixture.alice();
    assert_eq!(read(1).value(&fixture, &alice).await, "\"item 1\"");
    readers.stop().await;
}

#[tokio::test]
async fn reads_are_shared_again_after_their_session_was_killed() {
    let fixture = multiplexed_fixture("multiplex_killed").await;
    let owner = fixture.owner();
    for _ in 0..10 {
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE datname = 'multiplex_killed' AND usename = 'multiplex_killed'";
        let one = |id: usize| {
            let (fixture, owner) = (&fixture, &owner);
            async move {
                match read(id).run(fixture, owner).await {
                    Ok(rows) => assert_eq!(rows.values, [[format!("\"item {id}\"")]]),
                    // A request on a connection of its own reports the error.
                    Err(error) => assert!(matches!(error, Error::Unavailable { .. }), "{error:?}"),
                }
            }
        };
        let reads = join_all((1..=100).map(one));
        let (_, killed) = tokio::join!(reads, fixture.admin.batch_execute(kill));
        killed.unwrap();
        share_whatever_fails(&fixture, &owner).await;
    }
}

/// Reads until a connection is multiplexed, ignoring errors of connections that were killed.
async fn share_whatever_fails(fixture: &Arc<Fixture>, login: &Login) {
    let before = fixture.users.multiplexed_requests();
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.users.multiplexed_requests() == before {
        assert!(Instant::now() < deadline, "nothing is shared again");
        drop(join_all((1..=100).map(|id| read(id).run(fixture, login))).await);
    }
}

#[tokio::test]
async fn a_database_can_be_closed_while_reads_are_shared() {
    let fixture = multiplexed_fixture("multiplex_closed").await;
    let owner = fixture.owner();
    let readers = Readers::start(&fixture, &owner);
    share(&fixture, &owner).await;
    let held = || {
        let query = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'multiplex_closed'";
        fixture.admin.query_one(query, &[])
    };
    assert!(held().await.unwrap().get::<_, i64>(0) > 0);
    readers.stop().await;
    fixture.users.pool().close(&owner.database);
    let deadline = Instant::now() + Duration::from_secs(5);
    while held().await.unwrap().get::<_, i64>(0) > 0 {
        assert!(Instant::now() < deadline, "a connection stays");
        tokio::task::yield_now().await;
    }
}
