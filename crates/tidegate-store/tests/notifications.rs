//! Tests of the notifications to the other nodes.

use tidegate_identity::{IdentityStore as _, Timestamp, User, UserKey};
use tidegate_oauth::IssuerStore as _;
use tidegate_service::Notification;
use tidegate_store::{Change, PgOauthStore};

use tidegate_testkit::soon;

use crate::fixture::{Fixture, listening};
use crate::store::{client, key, session, user};

#[tokio::test]
async fn every_change_notifies_the_other_nodes() {
    let fixture = Fixture::migrated("notifications").await;
    let mut notifications = listening(&fixture).await;
    let store = PgOauthStore::new(fixture.executor());
    let at = Timestamp::from_seconds(1_000);
    let alice = user("shop", "alice");
    store.insert_user(&alice).await.unwrap();
    let member = User {
        role: None,
        id: Some("alice".to_owned()),
        user_groups: vec!["staff".to_owned()],
        ..alice.clone()
    };
    store.update_user(&alice, &member).await.unwrap();
    // Changes of members send no notification.
    store.update_user(&member, &member).await.unwrap();
    store.update_user(&member, &alice).await.unwrap();
    store.insert_client(&client("app", "shop")).await.unwrap();
    let open = session(1, "shop", "alice", "app");
    store.insert_session(&open).await.unwrap();
    assert!(store.delete_client("app", at).await.unwrap());
    store
        .insert_signing_key(&key("k1", "active"))
        .await
        .unwrap();
    let again = session(2, "shop", "alice", "app");
    store.insert_session(&again).await.unwrap();
    store
        .delete_user(&UserKey::new("shop", "alice"), at)
        .await
        .unwrap();
    let expected = [
        Change::Users("shop".to_owned()),
        Change::Users("shop".to_owned()),
        Change::Users("shop".to_owned()),
        Change::Client("app".to_owned()),
        Change::Client("app".to_owned()),
        Change::Sessions,
        Change::Keys,
        Change::Users("shop".to_owned()),
        Change::Sessions,
    ];
    for expected in expected {
        let received = loop {
            match soon(notifications.recv()).await.unwrap() {
                Notification::Received(text) if &*text == "probe" => {}
                Notification::Received(text) => break Change::parse(&text),
                Notification::Listening => {}
            }
        };
        assert_eq!(received, Some(expected));
    }
}
