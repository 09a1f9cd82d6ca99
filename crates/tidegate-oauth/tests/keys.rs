//! Tests of signing keys: they are created once, rotated during operation, and encrypted at rest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_identity::{Error as IdentityError, MasterKey, Secret};
use tidegate_oauth::{Error, Issuer, IssuerStore as _, KeyState, MemoryStore, Settings};

use crate::fixture::{DAY, Fixture, HOUR, ISSUER, MASTER, SeededRandom, node, segment};

fn kids(issuer: &Issuer) -> Vec<String> {
    let set: Value = serde_json::from_str(&issuer.key_set().unwrap()).unwrap();
    let keys = set["keys"].as_array().unwrap();
    keys.iter()
        .map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
}

fn kid(token: &Secret) -> String {
    segment(token, 0)["kid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nodes_that_start_at_once_agree_on_the_first_keys() {
    let api = Fixture::start().await;
    let store = Arc::new(MemoryStore::new());
    let ports = tidegate_oauth::Ports {
        store: store.clone(),
        ..api.ports.clone()
    };
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let ports = ports.clone();
            tokio::spawn(async move { node(&ports).await })
        })
        .collect();
    let mut sets = BTreeSet::new();
    for start in starts {
        sets.insert(kids(&start.await.unwrap()));
    }
    assert_eq!(sets.len(), 1);
    assert_eq!(store.signing_keys().await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_next_key_is_published_before_it_signs() {
    let api = Fixture::start().await;
    let [active, next] = kids(&api.issuer).try_into().unwrap();
    assert_eq!(kid(&api.alice().await.access_token), active);
    assert!(matches!(
        api.issuer.rotate_keys().await,
        Err(Error::KeyTooYoung { .. })
    ));
    api.clock.advance(HOUR);
    api.issuer.rotate_keys().await.unwrap();
    assert_eq!(kid(&api.alice().await.access_token), next);
    assert_eq!(kids(&api.issuer).len(), 3, "the old key is still published");
}

#[tokio::test]
async fn a_rotation_fails_no_request_on_any_node() {
    let api = Fixture::start().await;
    let other = node(&api.ports).await;
    let before = api.alice().await.access_token;
    api.clock.advance(HOUR / 2 + HOUR / 2);
    let current = api.alice().await.access_token;
    api.issuer.rotate_keys().await.unwrap();
    let after = api.alice().await.access_token;
    assert_ne!(kid(&current), kid(&after));
    for issuer in [&api.issuer, &other] {
        issuer.verify(current.expose()).unwrap();
        issuer
            .verify(after.expose())
            .expect("the other node has not looked yet, but knows the key");
    }
    other.refresh_keys().await.unwrap();
    assert_eq!(kids(&other), kids(&api.issuer));
    other
        .verify(before.expose())
        .expect("within the leeway, whatever key signed it");
}

#[tokio::test]
async fn of_two_nodes_that_rotate_at_once_one_does() {
    let api = Fixture::start().await;
    let other = node(&api.ports).await;
    api.clock.advance(HOUR);
    let (one, two) = tokio::join!(api.issuer.rotate_keys(), other.rotate_keys());
    assert!(one.is_ok());
    assert!(matches!(two, Ok(()) | Err(Error::KeyTooYoung { .. })));
    let states = api.store.signing_keys().await.unwrap();
    let count = |name| states.iter().filter(|key| key.state.name() == name).count();
    assert_eq!(
        (count("next"), count("active"), count("retired")),
        (1, 1, 1)
    );
    assert_eq!(
        api.audit()
            .iter()
            .filter(|name| **name == "key_rotated")
            .count(),
        1
    );
}

#[tokio::test]
async fn keys_rotate_automatically_and_old_ones_are_deleted() {
    let api = Fixture::start().await;
    let first = kids(&api.issuer)[0].clone();
    api.clock.advance(90 * DAY);
    api.issuer.maintain().await.unwrap();
    assert!(
        kids(&api.issuer).contains(&first),
        "retired keys are published for a while"
    );
    assert_ne!(kids(&api.issuer)[0], first);
    api.clock.advance(HOUR);
    api.issuer.maintain().await.unwrap();
    assert!(
        kids(&api.issuer).contains(&first),
        "its last token has just expired"
    );
    api.clock.advance(2 * HOUR);
    api.issuer.maintain().await.unwrap();
    assert!(!kids(&api.issuer).contains(&first));
}

#[tokio::test]
async fn refresh_tokens_outlive_the_keys() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    for _ in 0..3 {
        api.clock.advance(DAY);
        api.issuer.rotate_keys().await.unwrap();
        api.issuer.maintain().await.unwrap();
    }
    api.refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_replaced_key_is_no_longer_accepted() {
    let api = Fixture::start().await;
    let other = node(&api.ports).await;
    let tokens = api.alice().await;
    for issuer in [&api.issuer, &other] {
        issuer.verify(tokens.access_token.expose()).unwrap();
    }
    api.issuer.replace_key().await.unwrap();
    other.refresh_keys().await.unwrap();
    let tokens_after = api
        .refresh(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    for issuer in [&api.issuer, &other] {
        assert!(
            issuer.verify(tokens.access_token.expose()).is_err(),
            "also from the cache"
        );
        issuer.verify(tokens_after.access_token.expose()).unwrap();
    }
}

#[tokio::test]
async fn the_key_set_has_the_form_of_rfc_7517() {
    let api = Fixture::start().await;
    let set: Value = serde_json::from_str(&api.issuer.key_set().unwrap()).unwrap();
    for key in set["keys"].as_array().unwrap() {
        let member = |name: &str| key[name].as_str().unwrap().to_owned();
        assert_eq!(
            ["kty", "crv", "alg", "use"].map(member),
            ["EC", "P-256", "ES256", "sig"]
        );
        assert_eq!(
            ["kid", "x", "y"].map(|name| member(name).len()),
            [43, 43, 43]
        );
        assert!(key.get("d").is_none(), "no private part");
    }
}

#[tokio::test]
async fn another_master_key_is_refused() {
    let api = Fixture::start().await;
    let other = MasterKey::generate(&SeededRandom::new(2)).unwrap();
    let settings = Settings::new(ISSUER).unwrap();
    let started = Issuer::start(api.ports.clone(), other, settings).await;
    assert!(matches!(started, Err(Error::WrongMasterKey)));
}

#[tokio::test]
async fn a_damaged_or_swapped_sealed_key_does_not_open() {
    let api = Fixture::start().await;
    let records = api.store.signing_keys().await.unwrap();
    for damage in 0..3 {
        let store = Arc::new(MemoryStore::new());
        let mut record = records[0].clone();
        match damage {
            0 => *record.sealed_private_key.last_mut().unwrap() ^= 1,
            1 => record.sealed_private_key = records[1].sealed_private_key.clone(),
            _ => record.sealed_private_key.truncate(5),
        }
        record.state = KeyState::Active {
            since: record.created_at,
        };
        store.insert_signing_key(&record).await.unwrap();
        let ports = tidegate_oauth::Ports {
            store,
            ..api.ports.clone()
        };
        let settings = Settings::new(ISSUER).unwrap();
        let started = Issuer::start(ports, MASTER.clone(), settings).await;
        assert!(
            matches!(started, Err(Error::Identity(IdentityError::DamagedSecret))),
            "damage {damage}"
        );
    }
}

#[test]
fn a_master_key_is_read_as_it_was_written() {
    let text = MASTER.to_base64url();
    assert_eq!(text.len(), 43);
    for form in [text.to_string(), format!(" {}=\n", *text)] {
        assert_eq!(
            MasterKey::parse(&form).unwrap().fingerprint(),
            MASTER.fingerprint()
        );
    }
    for wrong in [
        "",
        "short",
        &"A".repeat(42),
        &"A".repeat(44),
        &"!".repeat(43),
    ] {
        let error = MasterKey::parse(wrong).unwrap_err();
        assert!(
            error.to_string().contains("32 bytes of base64url"),
            "{error}"
        );
    }
    assert_ne!(*MASTER.derive("one purpose"), *MASTER.derive("another"));
    assert_eq!(*MASTER.derive("one purpose"), *MASTER.derive("one purpose"));
}

#[tokio::test]
async fn ended_sessions_reach_other_nodes_at_their_next_refresh() {
    let api = Fixture::start().await;
    let other = node(&api.ports).await;
    let tokens = api.alice().await;
    other.verify(tokens.access_token.expose()).unwrap();
    api.revoke(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    assert!(
        api.issuer.verify(tokens.access_token.expose()).is_err(),
        "here at once"
    );
    api.clock.advance(Duration::from_secs(5));
    other.refresh_denylist().await.unwrap();
    assert!(other.verify(tokens.access_token.expose()).is_err());
    let late = node(&api.ports).await;
    assert!(
        late.verify(tokens.access_token.expose()).is_err(),
        "a node that starts later too"
    );
}

#[tokio::test]
async fn the_denylist_holds_until_the_last_token_has_expired() {
    let api = Fixture::start().await;
    let tokens = api.alice().await;
    api.revoke(tokens.refresh_token.as_ref().unwrap())
        .await
        .unwrap();
    for _ in 0..720 {
        api.clock.advance(Duration::from_secs(5));
        api.issuer.refresh_denylist().await.unwrap();
        api.issuer.maintain().await.unwrap();
        assert!(api.issuer.verify(tokens.access_token.expose()).is_err());
    }
}
