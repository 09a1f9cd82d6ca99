use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, Timestamp};
use tidegate_oauth::{IssuerStore, PurgeBefore};

use super::samples::NOW;

super::cases!(
    counting_follows_the_rule_step_by_step,
    of_parallel_attempts_no_more_than_the_limit_pass,
    a_refunded_attempt_does_not_count,
    a_cleared_counter_starts_again,
    counters_do_not_mix,
    old_counters_are_purged,
);

const LIMIT: AttemptLimit = AttemptLimit {
    count: 3,
    window: Duration::from_mins(1),
    first_delay: Duration::from_millis(1_500),
    longest_delay: Duration::from_secs(20),
    memory: Duration::from_secs(100),
};

fn of(subject: &str) -> AttemptKey {
    AttemptKey {
        scope: "account",
        subject: subject.to_owned(),
    }
}

fn after(millis: u64) -> Timestamp {
    NOW.plus(Duration::from_millis(millis))
}

/// The pauses between attempts. They cover allowed and refused attempts, long waits, and expired
/// windows.
const PAUSES: [u64; 8] = [0, 21_000, 400, 63_000, 1_600, 200_000, 7_000, 1];

async fn counting_follows_the_rule_step_by_step(store: Arc<dyn IssuerStore>) {
    let key = of("alice");
    for limit in [
        LIMIT,
        AttemptLimit { count: 1, ..LIMIT },
        AttemptLimit { count: 0, ..LIMIT },
    ] {
        store.clear_attempts(&key).await.unwrap();
        let (mut before, mut time) = (None, 0);
        for pause in PAUSES.into_iter().cycle().take(60) {
            time += pause;
            let (next, expected) = AttemptCounter::count(before, &limit, after(time));
            let response = store
                .count_attempt(&key, &limit, after(time))
                .await
                .unwrap();
            assert_eq!(response, expected, "{limit:?} at {time}: {before:?}");
            before = Some(next);
        }
    }
}

async fn of_parallel_attempts_no_more_than_the_limit_pass(store: Arc<dyn IssuerStore>) {
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                store
                    .count_attempt(&of("alice"), &LIMIT, NOW)
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut allowed = 0;
    for task in tasks {
        match task.await.unwrap() {
            AttemptOutcome::Allowed => allowed += 1,
            AttemptOutcome::Refused { until } => assert_eq!(until, after(1_500)),
        }
    }
    assert_eq!(allowed, 3);
}

async fn a_refunded_attempt_does_not_count(store: Arc<dyn IssuerStore>) {
    let key = of("alice");
    store.refund_attempt(&key).await.unwrap();
    for _ in 0..20 {
        let counted = store.count_attempt(&key, &LIMIT, NOW).await.unwrap();
        assert_eq!(counted, AttemptOutcome::Allowed);
        store.refund_attempt(&key).await.unwrap();
    }
    for _ in 0..3 {
        assert_eq!(
            store.count_attempt(&key, &LIMIT, NOW).await.unwrap(),
            AttemptOutcome::Allowed
        );
    }
    let refused = store.count_attempt(&key, &LIMIT, NOW).await.unwrap();
    assert_eq!(
        refused,
        AttemptOutcome::Refused {
            until: after(1_500)
        }
    );
    store.refund_attempt(&key).await.unwrap();
    let counted = store.count_attempt(&key, &LIMIT, NOW).await.unwrap();
    assert_eq!(
        counted,
        AttemptOutcome::Allowed,
        "giving back ends the wait"
    );
}

async fn a_cleared_counter_starts_again(store: Arc<dyn IssuerStore>) {
    let key = of("alice");
    for _ in 0..4 {
        store.count_attempt(&key, &LIMIT, NOW).await.unwrap();
    }
    store.clear_attempts(&key).await.unwrap();
    store.clear_attempts(&key).await.unwrap();
    for _ in 0..3 {
        assert_eq!(
            store.count_attempt(&key, &LIMIT, NOW).await.unwrap(),
            AttemptOutcome::Allowed
        );
    }
}

async fn counters_do_not_mix(store: Arc<dyn IssuerStore>) {
    for _ in 0..4 {
        store
            .count_attempt(&of("alice"), &LIMIT, NOW)
            .await
            .unwrap();
    }
    let address = AttemptKey {
        scope: "address",
        ..of("alice")
    };
    for key in [of("bob"), address] {
        assert_eq!(
            store.count_attempt(&key, &LIMIT, NOW).await.unwrap(),
            AttemptOutcome::Allowed
        );
    }
}

async fn old_counters_are_purged(store: Arc<dyn IssuerStore>) {
    store
        .count_attempt(&of("alice"), &LIMIT, NOW)
        .await
        .unwrap();
    store
        .count_attempt(&of("bob"), &LIMIT, after(10_000))
        .await
        .unwrap();
    let zero = Timestamp::from_millis(0);
    let before = |attempts| PurgeBefore {
        sessions: zero,
        attempts,
        audit: zero,
        flows: zero,
    };
    assert_eq!(store.purge(before(after(60_000))).await.unwrap(), 0);
    assert_eq!(store.purge(before(after(60_001))).await.unwrap(), 1);
    assert_eq!(store.purge(before(after(70_001))).await.unwrap(), 1);
}
