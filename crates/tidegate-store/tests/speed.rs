//! Refreshes in parallel: counted and printed, not judged by the clock.

use std::time::Instant;

use tidegate_oauth::{Presented, Timestamp};

use crate::stage::Stage;
use crate::store::session;

const NOW: Timestamp = Timestamp::from_seconds(1_000);
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refreshes_of_many_sessions_run_side_by_side() {
    const SESSIONS: u64 = 16;
    const ROUNDS: u64 = 50;
    let stage = Stage::migrated("speed").await;
    let store = stage.store();
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
                        matches!(presented, Ok(Presented::Accepted(now)) if now.presented == round);
                    assert!(accepted, "session {number}, round {round}");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let rate = f64::from(u32::try_from(SESSIONS * ROUNDS).unwrap()) / start.elapsed().as_secs_f64();
    println!("{rate:.0} refreshes a second (unoptimised build)");
}
