//! Tests of passwords and their hashes.

use tidegate_identity::{
    IdentityStore as _, LoginAttempt, PasswordCost, PasswordHasher, Secret, UserKey,
};

use crate::fixture::{CHEAP, Fixture, SeededRandom, fault};

/// Signs alice in.
async fn log_in(api: &Fixture, password: &str) -> tidegate_identity::Result<()> {
    let password = Secret::new(password);
    let attempt = LoginAttempt {
        key: UserKey::new("demo", "alice"),
        client_id: None,
        address: None,
    };
    let user = api.service.login_with_password(&attempt, &password);
    user.await.map(drop)
}

#[tokio::test]
async fn a_hash_of_another_cost_is_replaced_at_the_next_sign_in() {
    let api = Fixture::start().await;
    let key = UserKey::new("demo", "alice");
    let random = SeededRandom::new(3);
    let costly = PasswordCost {
        memory_kib: 16,
        ..CHEAP
    };
    let costly = PasswordHasher::start(1, costly, &random).unwrap();
    let old = costly
        .hash(&Secret::new("alice1234"), &random)
        .await
        .unwrap();
    api.store.set_password_hash(&key, None, &old).await.unwrap();
    log_in(&api, "alice1234").await.unwrap();
    let new = api
        .directory
        .user(&key)
        .await
        .unwrap()
        .password_hash
        .unwrap();
    assert!(
        old.contains("m=16,") && new.contains("m=8,"),
        "{old} became {new}"
    );
    log_in(&api, "alice1234").await.unwrap();
    assert_eq!(
        api.directory.user(&key).await.unwrap().password_hash,
        Some(new)
    );
}

#[tokio::test]
async fn passwords_are_kept_as_argon2id_of_the_recommended_cost() {
    let random = SeededRandom::new(3);
    let hasher = PasswordHasher::start(1, PasswordCost::default(), &random).unwrap();
    let hash = hasher
        .hash(&Secret::new("alice1234"), &random)
        .await
        .unwrap();
    assert!(
        hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
        "{hash}"
    );
}

#[tokio::test]
async fn a_wrong_password_costs_one_hash_and_is_audited() {
    let api = Fixture::start().await;
    let before = api.ports.hasher.completed();
    assert_eq!(fault(log_in(&api, "alice4321").await), "WrongCredentials");
    assert_eq!(api.ports.hasher.completed(), before + 1);
    assert_eq!(api.audit().last(), Some(&"sign_in_failed"));
}
