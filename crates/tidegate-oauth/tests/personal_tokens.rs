//! Tests of the limits of personal access tokens.

use std::time::Duration;

use tidegate_identity::{Clock as _, Error as IdentityError, Timestamp, UserKey};
use tidegate_oauth::{CreatedPersonalToken, Error, NewPersonalToken, Result, Scopes};

use crate::fixture::{DAY, Fixture, HERE, HOUR};

/// Creates a personal access token of a user of the tenant `demo`.
async fn create(
    api: &Fixture,
    user: &str,
    expires_at: Option<Timestamp>,
) -> Result<CreatedPersonalToken> {
    let new = NewPersonalToken {
        name: "job".to_owned(),
        expires_at,
        scopes: Scopes::default(),
    };
    let key = UserKey::new("demo", user);
    api.issuer
        .issue_personal_token(key, new, (None, HERE))
        .await
}

#[tokio::test]
async fn a_token_lives_90_days_if_not_asked_otherwise_and_366_at_most() {
    let api = Fixture::start().await;
    let now = api.clock.now();
    let (instant, longest) = (Duration::from_millis(1), 366 * DAY);
    for (asked, expected) in [
        (None, Some(90 * DAY)),
        (Some(Duration::ZERO), None),
        (Some(instant), Some(instant)),
        (Some(longest), Some(longest)),
        (Some(longest + instant), None),
    ] {
        let made = create(&api, "alice", asked.map(|asked| now.plus(asked))).await;
        match (made, expected) {
            (Ok(made), Some(expected)) => {
                assert_eq!(made.session.closes_at, now.plus(expected), "{asked:?}");
            }
            (Err(Error::Identity(IdentityError::InvalidField { field, .. })), None) => {
                assert_eq!(field, "expires_at");
            }
            (made, _) => panic!("{asked:?}: {made:?}"),
        }
    }
    // The default counts for the token itself too. After an hour it is no longer cached.
    let token = create(&api, "alice", None).await.unwrap().secret;
    let accepted = async || api.issuer.authenticate_token(token.expose()).await.is_ok();
    api.clock.advance(89 * DAY + 23 * HOUR);
    assert!(accepted().await);
    api.clock.advance(HOUR);
    assert!(!accepted().await);
}

#[tokio::test]
async fn a_user_has_at_most_100_tokens_that_are_valid() {
    let api = Fixture::start().await;
    let now = api.clock.now();
    let mut made = Vec::new();
    for _ in 0..99 {
        made.push(create(&api, "alice", None).await.unwrap());
    }
    let long = Some(now.plus(366 * DAY));
    create(&api, "alice", long).await.unwrap();
    let is_full = async || {
        let refused = create(&api, "alice", None).await;
        matches!(refused, Err(Error::TooManyPersonalTokens))
    };
    assert!(is_full().await);
    create(&api, "demo", None).await.unwrap();
    // A revoked token does not count, nor does one that has expired.
    let session = &made[0].session;
    let revoked = api.issuer.revoke_personal_token(session, (None, HERE));
    revoked.await.unwrap();
    create(&api, "alice", None).await.unwrap();
    assert!(is_full().await);
    api.clock.advance(90 * DAY);
    for _ in 0..99 {
        create(&api, "alice", None).await.unwrap();
    }
    assert!(is_full().await);
}
