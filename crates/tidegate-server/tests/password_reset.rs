//! Tests that a request for a password reset reveals nothing, neither by the response nor by work
//! before it.

use std::time::Duration;

use tidegate_identity::{TenantName, UserChange, UserKey};
use tidegate_oauth::NewClient;

use crate::fixture::{Api, TestResponse};
use crate::page_forms::only_from_here;
use crate::pages::{Browser, CALLBACK, encoded};
use crate::ports::{Mailbox, connected};

async fn ask(api: &Api, name: &str) -> TestResponse {
    let mut browser = Browser::default();
    let page = browser.get(api, "/reset").await;
    let fields = [("username", name), ("database", "demo")];
    browser.post(api, (&page, "ask"), &fields).await
}

async fn give_alice_an_address(api: &Api) {
    let change = UserChange {
        email: Some(Some("alice@example.org".to_owned())),
        ..UserChange::default()
    };
    let alice = UserKey::new("demo", "alice");
    api.directory.change_user(&alice, change).await.unwrap();
}

/// The token of the link in the last message.
async fn link(mailbox: &Mailbox, count: usize) -> String {
    let message = mailbox.messages(count).await.pop().unwrap();
    let (_, token) = message.text.split_once("?token=").unwrap();
    token.split_whitespace().next().unwrap().to_owned()
}

#[tokio::test]
async fn links_are_too_old_after_an_hour_and_after_a_day() {
    let (api, mailbox) = connected().await;
    give_alice_an_address(&api).await;
    let open = NewClient {
        id: Some("open".to_owned()),
        public: true,
        allow_signup: true,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Open",
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(open).await.unwrap();
    let path = format!(
        "/signup/?client_id=open&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let mut browser = Browser::default();
    let page = browser.get(&api, &path).await;
    let person = [
        ("username", "zoe"),
        ("email", "zoe@example.org"),
        ("password", "zoe-12345"),
    ];
    let sent = browser.post(&api, (&page, "sign_up"), &person).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    let confirm = format!("/signup/confirm?token={}", link(&mailbox, 1).await);
    ask(&api, "alice").await;
    let reset = format!("/reset?token={}", link(&mailbox, 2).await);
    for (minutes, of_reset, of_sign_up) in [(59, 200, 200), (1, 400, 200), (23 * 60, 400, 400)] {
        api.clock.advance(Duration::from_mins(minutes));
        assert_eq!(browser.get(&api, &reset).await.status, of_reset);
        assert_eq!(browser.get(&api, &confirm).await.status, of_sign_up);
    }
}

#[tokio::test]
async fn a_reset_request_responds_alike_for_every_name() {
    let (api, mailbox) = connected().await;
    give_alice_an_address(&api).await;
    let first = ask(&api, "alice").await;
    // The runtime has one thread, so a message that was written before the response would be here.
    assert_eq!(mailbox.len(), 0, "nothing is looked for before the answer");
    assert_eq!(first.status, 200);
    mailbox.messages(1).await;
    for name in [
        "nobody",
        "demo",
        "guest",
        "nobody@example.org",
        "' or 1=1 --",
    ] {
        let response = ask(&api, name).await;
        assert_eq!(response.status, first.status, "{name}");
        assert_eq!(response.text(), first.text(), "{name}");
    }
    // The response is the same for a user who has received the maximum number of messages.
    for _ in 0..8 {
        assert_eq!(ask(&api, "alice").await.text(), first.text());
    }
    let refused = loop {
        let response = ask(&api, "nobody").await;
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!(refused.status, 429, "by address: {}", refused.text());
    mailbox.messages(5).await;
}

#[tokio::test]
async fn a_new_password_is_chosen_from_our_own_page_only() {
    let (api, mailbox) = connected().await;
    give_alice_an_address(&api).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, "/reset").await;
    let more = "&username=alice&database=demo";
    only_from_here(&api, &browser, (&page, "ask"), more).await;
    assert_eq!(ask(&api, "alice").await.status, 200);
    let token = link(&mailbox, 1).await;
    let page = browser.get(&api, &format!("/reset?token={token}")).await;
    let more = "&password=taken-over-1";
    only_from_here(&api, &browser, (&page, "choose"), more).await;
    api.token("alice").await;
    let chosen = [("password", "alice-9876")];
    let done = browser.post(&api, (&page, "choose"), &chosen).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let dead = browser.get(&api, &format!("/reset?token={token}")).await;
    assert_eq!(dead.status, 400, "once");
}
