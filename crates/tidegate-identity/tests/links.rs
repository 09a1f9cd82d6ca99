//! Tests of links that reset a password, and of links that sign in.

use std::time::Duration;

use tidegate_identity::{PendingSignIn, RequestContext, Secret, UserKey};

use crate::fixture::{Fixture, fault};

/// The token of the link in alice's reset message.
async fn reset_token(fixture: &Fixture) -> String {
    let messages = fixture.service.reset_emails("demo", "alice").await.unwrap();
    let [message] = messages.as_slice() else {
        panic!("one message, not {messages:?}");
    };
    assert_eq!(message.to, "alice@example.org");
    let (_, rest) = message.text.split_once("/reset?token=").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_reset_link_works_once_and_for_an_hour() {
    let fixture = Fixture::start().await;
    let (token, context) = (reset_token(&fixture).await, RequestContext::default());
    let password = Secret::new("alice5678");
    let reset = async || {
        fixture
            .service
            .reset_password(&token, (&password, false), &context)
            .await
    };
    reset().await.unwrap();
    assert_eq!(
        fault(reset().await),
        "InvalidLink",
        "the password has changed"
    );
    let alice = UserKey::new("demo", "alice");
    let signed_in = fixture.service.sign_in(alice, &password, None, &context);
    signed_in.await.unwrap();
    let late = reset_token(&fixture).await;
    fixture.clock.advance(Duration::from_hours(1));
    assert_eq!(
        fault(fixture.service.reset_user(&late).await),
        "InvalidLink"
    );
}

#[tokio::test]
async fn a_sign_in_link_works_once_and_on_this_machine_only() {
    let fixture = Fixture::start().await;
    let alice = UserKey::new("demo", "alice");
    let link = fixture.service.sign_in_link(&alice, Duration::from_mins(5));
    let link = link.await.unwrap();
    let from = |address: [u8; 4]| RequestContext {
        address: Some(address.into()),
        ..RequestContext::default()
    };
    for (context, works) in [
        (from([192, 0, 2, 1]), false),
        (from([127, 0, 0, 1]), true),
        (from([127, 0, 0, 1]), false),
    ] {
        let opened = fixture
            .service
            .open_sign_in_link(link.expose(), &context)
            .await;
        assert_eq!(opened.is_ok(), works, "{opened:?}");
    }
}

#[tokio::test]
async fn a_mailbox_gets_five_reset_messages_an_hour_however_the_user_is_named() {
    let fixture = Fixture::start().await;
    let names = ["alice", "alice@example.org", "Alice@Example.Org"];
    let mut sent = 0;
    for (minute, name) in (0..120).zip(names.iter().cycle()) {
        sent += fixture
            .service
            .reset_emails("demo", name)
            .await
            .unwrap()
            .len();
        assert!(sent <= 5 || minute >= 60, "{sent} in {minute} minutes");
        fixture.clock.advance(Duration::from_mins(1));
    }
    assert!(sent > 5, "the limit ends");
}

#[tokio::test]
async fn an_attacker_who_requests_links_does_not_keep_the_user_from_getting_one() {
    let fixture = Fixture::start().await;
    let pending = PendingSignIn::new(None, ("/account", None), &Secret::new("cookie"));
    let pending = pending.unwrap();
    for _ in 0..10 {
        let alice = ("demo", "alice");
        let _by_attacker = fixture.service.sign_in_emails(alice, &pending).await;
    }
    fixture.clock.advance(Duration::from_mins(1));
    let own = fixture.service.sign_in_emails(("demo", "alice"), &pending);
    assert_eq!(own.await.unwrap().len(), 1);
    let reset = fixture.service.reset_emails("demo", "alice").await;
    assert_eq!(reset.unwrap().len(), 1, "other messages have another limit");
}
