//! Tests of the rate limits of sign-in: an attempt is counted before the password is verified, and
//! refunded when the password is right.

use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{
    AttemptCounter, AttemptLimit, AttemptOutcome, RateLimits, Secret, Timestamp, UserKey,
};
use tidegate_oauth::{Error, ErrorKind, Parameters, TokenRequest};

use crate::fixture::Fixture;

/// Signs in from a unique address, so that only the account's counter applies.
async fn attempt(api: &Fixture, number: u8, user: &str, password: &str) -> Result<(), Error> {
    let pairs = [
        ("grant_type", "password"),
        ("client_id", "app"),
        ("database", "demo"),
        ("username", user),
        ("password", password),
    ];
    let request = TokenRequest::parse(&Parameters::from_pairs(pairs), None)?;
    api.issuer
        .token(request, Some([192, 0, 2, number].into()))
        .await
        .map(drop)
}

#[tokio::test]
async fn of_fifty_parallel_wrong_passwords_ten_are_tried() {
    let api = Arc::new(Fixture::start().await);
    let before = api.ports.hasher.completed();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let api = api.clone();
            tokio::spawn(async move { attempt(&api, number, "alice", "wrong-password").await })
        })
        .collect();
    let mut codes = Vec::new();
    for task in tasks {
        codes.push(task.await.unwrap().unwrap_err().kind());
    }
    let count = |fault| codes.iter().filter(|known| **known == fault).count();
    assert_eq!(
        (
            count(ErrorKind::InvalidRequest),
            count(ErrorKind::Throttled)
        ),
        (10, 40)
    );
    assert_eq!(api.ports.hasher.completed() - before, 10);
}

#[tokio::test]
async fn the_eleventh_attempt_waits_and_the_waits_grow() {
    let api = Fixture::start().await;
    for number in 0..10 {
        let error = attempt(&api, number, "alice", "wrong-password")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    }
    let mut waits = Vec::new();
    for number in 10..17 {
        let error = attempt(&api, number, "alice", "alice1234")
            .await
            .unwrap_err();
        let wait = error.retry_after().unwrap();
        waits.push(wait);
        api.clock.advance(Duration::from_secs(wait));
        attempt(&api, number, "alice", "wrong-password")
            .await
            .unwrap_err();
    }
    assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900]);
    let last = attempt(&api, 17, "alice", "alice1234").await.unwrap_err();
    assert_eq!(
        last.kind(),
        ErrorKind::Throttled,
        "also with the right password"
    );
    api.clock.advance(Duration::from_mins(15));
    attempt(&api, 18, "alice", "alice1234").await.unwrap();
}

#[tokio::test]
async fn a_refusal_while_attempts_are_pending_allows_an_early_retry() {
    let api = Arc::new(Fixture::start().await);
    let tasks: Vec<_> = (0..30)
        .map(|number| {
            let api = api.clone();
            tokio::spawn(async move { attempt(&api, number, "alice", "alice1234").await })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        if let Err(error) = task.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::Throttled);
            waits.push(error.retry_after());
        }
    }
    assert!(!waits.is_empty(), "nobody was in anybody's way");
    assert!(waits.iter().all(|wait| *wait == Some(1)), "{waits:?}");
    // The clock did not move, so the reported wait must be exact.
    attempt(&api, 30, "alice", "alice1234").await.unwrap();
}

#[tokio::test]
async fn an_unknown_user_is_counted_as_a_known_one() {
    let api = Fixture::start().await;
    for user in ["alice", "nobody"] {
        let mut faults = Vec::new();
        for number in 0..12 {
            faults.push(
                attempt(&api, number, user, "wrong-password")
                    .await
                    .unwrap_err()
                    .kind(),
            );
        }
        assert_eq!(faults[..10], [ErrorKind::InvalidRequest; 10], "{user}");
        assert_eq!(faults[10..], [ErrorKind::Throttled; 2], "{user}");
        api.clock.advance(Duration::from_hours(1));
    }
}

#[tokio::test]
async fn successes_do_not_count() {
    let api = Fixture::start().await;
    for _ in 0..100 {
        api.alice().await;
    }
}

#[tokio::test]
async fn a_success_refunds_only_its_own_attempt() {
    let api = Fixture::start().await;
    for number in 0..9 {
        attempt(&api, number, "alice", "wrong-password")
            .await
            .unwrap_err();
    }
    attempt(&api, 9, "alice", "alice1234").await.unwrap();
    assert_eq!(
        attempt(&api, 10, "alice", "wrong-password")
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::InvalidRequest
    );
    assert_eq!(
        attempt(&api, 11, "alice", "alice1234")
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::Throttled
    );
}

#[tokio::test]
async fn a_window_forgets_what_came_before_it() {
    let api = Fixture::start().await;
    for _ in 0..5 {
        for number in 0..9 {
            attempt(&api, number, "alice", "wrong-password")
                .await
                .unwrap_err();
        }
        api.clock.advance(Duration::from_mins(15));
    }
    attempt(&api, 0, "alice", "alice1234").await.unwrap();
}

#[tokio::test]
async fn an_address_has_thirty_failures_a_minute() {
    let api = Fixture::start().await;
    for number in 0..30 {
        let user = format!("user{number}");
        let error = attempt(&api, 1, &user, "wrong-password").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{number}");
    }
    let error = attempt(&api, 1, "alice", "alice1234").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.retry_after()),
        (ErrorKind::Throttled, Some(60))
    );
    attempt(&api, 2, "alice", "alice1234")
        .await
        .expect("another address goes on");
    api.clock.advance(Duration::from_mins(1));
    attempt(&api, 1, "alice", "alice1234").await.unwrap();
}

#[tokio::test]
async fn a_new_password_lifts_the_rate_limit() {
    let api = Fixture::start().await;
    for number in 0..11 {
        attempt(&api, number, "alice", "wrong-password")
            .await
            .unwrap_err();
    }
    let password = Secret::new("alice5678");
    api.directory
        .set_password(&UserKey::new("demo", "alice"), &password)
        .await
        .unwrap();
    attempt(&api, 11, "alice", "alice5678").await.unwrap();
}

#[test]
fn a_mailbox_gets_five_messages_an_hour_at_most() {
    let limit = RateLimits::default().emails;
    let mut counter = None;
    let mut sent = Vec::new();
    for minute in 0..5 * 60 {
        let now = Timestamp::from_seconds(60 * minute);
        let (after, response) = AttemptCounter::count(counter, &limit, now);
        counter = Some(after);
        if response == AttemptOutcome::Allowed {
            sent.push(minute);
        }
    }
    for &first in &sent {
        let within = sent
            .iter()
            .filter(|&&one| (first..first + 60).contains(&one));
        assert!(within.count() <= 5, "{sent:?}");
    }
    assert!(sent.len() > 20, "{sent:?}");
}

#[test]
fn a_counter_survives_any_number_of_attempts() {
    let limit = AttemptLimit {
        count: 10,
        window: Duration::from_mins(15),
        first_delay: Duration::from_secs(30),
        longest_delay: Duration::from_mins(15),
        memory: Duration::from_mins(15),
    };
    let mut now = Timestamp::from_seconds(0);
    let mut counter = None;
    for _ in 0..10_000 {
        let (after, response) = AttemptCounter::count(counter, &limit, now);
        counter = Some(after);
        if let AttemptOutcome::Refused { until } = response {
            assert!(until > now && until.since(now) <= limit.longest_delay);
            now = until;
        }
    }
}
