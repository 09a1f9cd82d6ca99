//! Consents, personal access tokens, and the service users of clients.

use std::sync::Arc;
use std::time::Duration;

use tidegate_identity::{EndReason, Secret, SecretHash, UserKey};
use tidegate_oauth::{Client, Consent, GrantKind, IssuerStore, PersonalToken, Scopes, Session};

use super::samples::{NOW, client, session, user};

super::cases!(
    a_consent_is_kept_replaced_and_deleted,
    consents_are_deleted_with_their_user_and_their_client,
    a_personal_token_is_found_by_its_hash_while_it_is_alive,
    a_dropped_user_is_no_service_user_any_more,
);

fn alice() -> UserKey {
    UserKey::new("shop", "alice")
}

fn consent(client_id: &str, scope: &str) -> Consent {
    Consent {
        client_id: client_id.to_owned(),
        scopes: Scopes::parse(scope).unwrap(),
        given_at: NOW,
    }
}

async fn a_consent_is_kept_replaced_and_deleted(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    let (first, second) = (consent("app", "read"), consent("app", "read sql"));
    let other = consent("other", "");
    for consent in [&first, &other, &second] {
        store.put_consent(&alice(), consent).await.unwrap();
    }
    let found = store.consent(&alice(), "app").await.unwrap();
    assert_eq!(found, Some(second.clone()));
    let all = store.consents_of_user(&alice()).await.unwrap();
    assert_eq!(all, [second, other]);
    assert_eq!(
        store
            .consent(&UserKey::new("shop", "bob"), "app")
            .await
            .unwrap(),
        None
    );
    assert!(store.delete_consent(&alice(), "app").await.unwrap());
    assert!(!store.delete_consent(&alice(), "app").await.unwrap());
    assert_eq!(store.consents_of_user(&alice()).await.unwrap().len(), 1);
}

async fn consents_are_deleted_with_their_user_and_their_client(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    store.insert_client(&client("app", "shop")).await.unwrap();
    for id in ["app", "built-in"] {
        store
            .put_consent(&alice(), &consent(id, "read"))
            .await
            .unwrap();
    }
    assert!(store.delete_client("app", NOW).await.unwrap());
    assert_eq!(
        store.consents_of_user(&alice()).await.unwrap(),
        [consent("built-in", "read")]
    );
    assert!(store.delete_user(&alice(), NOW).await.unwrap());
    store.insert_user(&user("shop", "alice")).await.unwrap();
    assert_eq!(store.consents_of_user(&alice()).await.unwrap(), []);
}

async fn a_personal_token_is_found_by_its_hash_while_it_is_alive(store: Arc<dyn IssuerStore>) {
    let hash = SecretHash::of(&Secret::new("tgp_x"));
    let token = Session {
        grant: GrantKind::PersonalToken,
        personal: Some(Box::new(PersonalToken {
            name: "nightly".to_owned(),
            hash,
        })),
        ..session(1, "shop", "alice", "")
    };
    store.insert_session(&token).await.unwrap();
    store
        .insert_session(&session(2, "shop", "alice", "app"))
        .await
        .unwrap();
    let later = NOW.plus(Duration::from_secs(7));
    let used = store
        .use_personal_token(hash, later)
        .await
        .unwrap()
        .unwrap();
    let expected = Session {
        refreshed_at: later,
        ..token.clone()
    };
    assert_eq!(used, expected);
    assert_eq!(store.session(token.id).await.unwrap(), Some(expected));
    let other = SecretHash::of(&Secret::new("tgp_y"));
    assert_eq!(store.use_personal_token(other, later).await.unwrap(), None);
    assert_eq!(
        store
            .use_personal_token(hash, token.expires_at)
            .await
            .unwrap(),
        None
    );
    let listed = async |user| {
        let tokens = store
            .personal_tokens("shop", user, later, 10)
            .await
            .unwrap();
        tokens.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(None).await, [token.id]);
    assert_eq!(listed(Some("alice")).await, [token.id]);
    assert_eq!(listed(Some("bob")).await, []);
    assert!(
        store
            .end_session(token.id, EndReason::Revoked, later)
            .await
            .unwrap()
    );
    assert_eq!(store.use_personal_token(hash, later).await.unwrap(), None);
    assert_eq!(listed(None).await, []);
}

async fn a_dropped_user_is_no_service_user_any_more(store: Arc<dyn IssuerStore>) {
    store.insert_user(&user("shop", "alice")).await.unwrap();
    store.insert_user(&user("shop", "bob")).await.unwrap();
    for (id, name) in [("a", "alice"), ("b", "bob")] {
        let client = Client {
            service_user: Some(name.to_owned()),
            ..client(id, "shop")
        };
        store.insert_client(&client).await.unwrap();
        assert_eq!(store.client(id).await.unwrap(), Some(client));
    }
    assert!(store.delete_user(&alice(), NOW).await.unwrap());
    let user = async |id| store.client(id).await.unwrap().unwrap().service_user;
    assert_eq!(user("a").await, None);
    assert_eq!(user("b").await.as_deref(), Some("bob"));
}
