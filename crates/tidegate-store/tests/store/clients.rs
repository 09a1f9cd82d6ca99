use std::sync::Arc;

use tidegate_identity::{EndReason, SecretHash, Timestamp};
use tidegate_oauth::{
    Client, ClientAuthentication, GrantKind, GrantSet, IssuerStore, Session, SessionEnd,
};

use super::samples::{NOW, client, session};

super::cases!(
    a_client_comes_back_as_it_was,
    an_id_is_taken_in_every_tenant,
    an_update_keeps_tenant_and_age,
    a_change_of_what_was_changed_meanwhile_is_refused,
    dropping_a_client_ends_its_sessions_in_the_store,
    the_sessions_of_a_client_and_a_grant_are_ended,
    redirect_addresses_are_found_by_their_beginning,
);

async fn a_client_comes_back_as_it_was(store: Arc<dyn IssuerStore>) {
    let confidential = client("b", "shop");
    let public = Client {
        authentication: ClientAuthentication::Public,
        grants: GrantSet::All,
        redirect_uris: Vec::new(),
        homepage: Some("https://example.org/?q=\"'\\".to_owned()),
        description: None,
        ..client("a", "shop")
    };
    for client in [&confidential, &public, &client("c", "other")] {
        assert!(store.insert_client(client).await.unwrap());
    }
    assert_eq!(store.client("a").await.unwrap(), Some(public.clone()));
    assert_eq!(store.clients("shop").await.unwrap(), [public, confidential]);
    assert_eq!(store.client("nobody").await.unwrap(), None);
}

async fn an_id_is_taken_in_every_tenant(store: Arc<dyn IssuerStore>) {
    assert!(store.insert_client(&client("a", "shop")).await.unwrap());
    assert!(!store.insert_client(&client("a", "other")).await.unwrap());
    assert_eq!(store.clients("other").await.unwrap(), []);
}

async fn an_update_keeps_tenant_and_age(store: Arc<dyn IssuerStore>) {
    let before = client("a", "shop");
    assert!(!store.update_client(&before, &before).await.unwrap());
    store.insert_client(&before).await.unwrap();
    let change = Client {
        name: "Another".to_owned(),
        authentication: ClientAuthentication::Public,
        grants: GrantSet::Only(Vec::new()),
        confirm: false,
        two_factor: true,
        ..before.clone()
    };
    let moved = Client {
        database: Some("other".to_owned()),
        created_at: Timestamp::from_millis(1),
        ..change.clone()
    };
    assert!(store.update_client(&before, &moved).await.unwrap());
    assert_eq!(store.client("a").await.unwrap(), Some(change));
}

async fn a_change_of_what_was_changed_meanwhile_is_refused(store: Arc<dyn IssuerStore>) {
    let read = client("a", "shop");
    store.insert_client(&read).await.unwrap();
    let rotated = Client {
        authentication: ClientAuthentication::Confidential {
            current: SecretHash::from_bytes([7; 32]),
            previous: None,
        },
        ..read.clone()
    };
    let renamed = Client {
        name: "Another".to_owned(),
        ..read.clone()
    };
    assert!(store.update_client(&read, &rotated).await.unwrap());
    assert!(!store.update_client(&read, &renamed).await.unwrap());
    assert_eq!(store.client("a").await.unwrap(), Some(rotated));
}

async fn dropping_a_client_ends_its_sessions_in_the_store(store: Arc<dyn IssuerStore>) {
    store.insert_client(&client("a", "shop")).await.unwrap();
    let (gone, stays) = (session(1, "shop", "x", "a"), session(2, "shop", "x", "b"));
    store.insert_session(&gone).await.unwrap();
    store.insert_session(&stays).await.unwrap();
    assert!(store.delete_client("a", NOW).await.unwrap());
    assert!(!store.delete_client("a", NOW).await.unwrap());
    let end = store
        .session(gone.id)
        .await
        .unwrap()
        .unwrap()
        .ended
        .unwrap();
    assert_eq!((end.at, end.reason), (NOW, EndReason::ClientDropped));
    assert_eq!(store.session(stays.id).await.unwrap(), Some(stays));
}

async fn the_sessions_of_a_client_and_a_grant_are_ended(store: Arc<dyn IssuerStore>) {
    let grant = GrantKind::ClientCredentials;
    let with_grant = |number, client: &str| Session {
        grant,
        ..session(number, "shop", "x", client)
    };
    let (gone, other_client) = (with_grant(1, "a"), with_grant(2, "b"));
    let other_grant = session(3, "shop", "x", "a");
    for session in [&gone, &other_client, &other_grant] {
        store.insert_session(session).await.unwrap();
    }
    let end = SessionEnd {
        at: NOW,
        reason: EndReason::Ended,
    };
    store.end_sessions_of_client("a", grant, end).await.unwrap();
    let ended = store.session(gone.id).await.unwrap().unwrap().ended;
    assert_eq!(ended, Some(end));
    for session in [other_client, other_grant] {
        assert_eq!(store.session(session.id).await.unwrap(), Some(session));
    }
}

async fn redirect_addresses_are_found_by_their_beginning(store: Arc<dyn IssuerStore>) {
    let with = |id: &str, database: &str, uris: &[&str]| Client {
        redirect_uris: uris.iter().map(|uri| (*uri).to_owned()).collect(),
        ..client(id, database)
    };
    let one = with("a", "shop", &["https://a.example/%_", "http://[::1]:1/x"]);
    let other = with("b", "other", &["https://a.example/%_/more", ""]);
    for client in [&one, &other] {
        store.insert_client(client).await.unwrap();
    }
    let found = async |start| {
        let mut found = store.redirect_uris_from(start).await.unwrap();
        found.sort();
        found
    };
    let both = ["https://a.example/%_", "https://a.example/%_/more"];
    assert_eq!(found("https://a.example/%_").await, both);
    assert_eq!(found("http://[::1]").await, ["http://[::1]:1/x"]);
    assert!(found("https://a.example/x").await.is_empty());
    assert!(found("http://127.0.0.1").await.is_empty());
}
