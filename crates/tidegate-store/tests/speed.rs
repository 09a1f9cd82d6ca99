//! Measures the rate of refreshes. The rate is printed, and no limit is asserted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_identity::Timestamp;
use tidegate_oauth::{IssuerStore, RefreshOutcome};
use tidegate_store::PgOauthStore;

use tidegate_testkit::soon;

use crate::fixture::Fixture;
use crate::store::session;

const NOW: Timestamp = Timestamp::from_seconds(1_000);
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refreshes_run_side_by_side_and_touch_no_index() {
    const SESSIONS: u64 = 16;
    const ROUNDS: u64 = 50;
    let fixture = Fixture::migrated("speed").await;
    let store: Arc<dyn IssuerStore> = Arc::new(PgOauthStore::new(fixture.another()));
    for number in 0..SESSIONS {
        let session = session(number.into(), "shop", "alice", "app");
        store.insert_session(&session).await.unwrap();
    }
    let start = Instant::now();
    let clients: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let store = store.clone();
            let id = session(number.into(), "shop", "alice", "app").id;
            tokio::spawn(async move {
                for round in 1..=ROUNDS {
                    let presented = store.present_refresh_token(id, round, NOW, NEVER).await;
                    let accepted =
                        matches!(presented, Ok(RefreshOutcome::Accepted(now)) if now.presented == round);
                    assert!(accepted, "session {number}, round {round}");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let start = start.elapsed();
    let rate = f64::from(u32::try_from(SESSIONS * ROUNDS).unwrap()) / start.as_secs_f64();
    println!("{rate:.0} refreshes a second (unoptimised build)");
    // An update that changes no indexed column is heap-only. PostgreSQL publishes the counts of a
    // session when it ends.
    drop(store);
    let query = "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables \
        where relname = 'sessions'";
    let counted = async {
        loop {
            let row = fixture.beside.query_one(query, &[]).await.unwrap();
            let (updates, heap_only): (i64, i64) = (row.get(0), row.get(1));
            if updates == i64::try_from(SESSIONS * ROUNDS).unwrap() {
                return (updates, heap_only);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (updates, heap_only) = soon(counted).await;
    assert!(heap_only * 10 > updates * 9, "{heap_only} of {updates}");
}
