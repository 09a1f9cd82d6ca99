//! Tests of signing in with a link that is sent by email.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tidegate_identity::{AuditSince, SecondFactor, Secret, UserChange, UserKey};

use crate::fixture::{Api, TestResponse, request};
use crate::page_forms::only_from_here;
use crate::pages::{Browser, CALLBACK, QUERY};
use crate::ports::{Mailbox, connected};

const ADDRESS: &str = "alice@example.org";
const BY_EMAIL: (&str, &str) = ("by", "email");

fn alice() -> UserKey {
    UserKey::new("demo", "alice")
}

async fn write_to(api: &Api, email: &str) {
    let change = UserChange {
        email: Some(Some(email.to_owned())),
        ..UserChange::default()
    };
    api.directory.change_user(&alice(), change).await.unwrap();
}

/// Requests a link on the sign-in page at `path`.
async fn ask(api: &Api, browser: &mut Browser, (path, name): (&str, &str)) -> TestResponse {
    let page = browser.get(api, path).await;
    let fields = [("username", name), ("database", "demo"), BY_EMAIL];
    browser.post(api, (&page, "sign_in"), &fields).await
}

/// The link in the last of `count` messages.
async fn link(mailbox: &Mailbox, count: usize) -> String {
    let message = mailbox.messages(count).await.pop().unwrap();
    assert_eq!(message.to, ADDRESS);
    let (_, token) = message.text.split_once("/auth/email?token=").unwrap();
    let token = token.split_whitespace().next().unwrap();
    format!("/auth/email?token={token}")
}

/// A browser in which a person has asked for a link during an authorization request, and the link.
async fn requested(api: &Api, mailbox: &Mailbox, count: usize) -> (Browser, String) {
    let mut browser = Browser::default();
    let asked = ask(api, &mut browser, (&format!("/auth?{QUERY}"), ADDRESS)).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    (browser, link(mailbox, count).await)
}

#[tokio::test]
async fn a_link_signs_in_once_and_continues_the_request() {
    let (api, mailbox) = connected().await;
    write_to(&api, ADDRESS).await;
    let (mut browser, link) = requested(&api, &mailbox, 1).await;
    let page = browser.get(&api, &link).await;
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(page.text().contains("<strong>alice</strong>"));
    let policy = page.header("content-security-policy");
    assert!(policy.contains("http://127.0.0.1:5173"), "{policy}");
    let head = request(Method::HEAD, &link).header("cookie", &browser.cookie);
    assert_eq!(
        api.call(head.body(String::new()).unwrap()).await.status,
        200
    );
    let before = browser.cookie.clone();
    let opened = browser.post(&api, (&page, "email"), &[]).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
    assert_eq!(opened.header("location"), format!("/auth?{QUERY}"));
    assert_ne!(browser.cookie, before, "a new cookie");
    let known = api.directory.user(&alice()).await.unwrap();
    // Another person may know the password, so applications must not trust the address.
    assert_eq!(known.verified_email(), None);
    let consent = browser.get(&api, opened.header("location")).await;
    let code = browser
        .post(&api, (&consent, "decide"), &[("decision", "allow")])
        .await;
    assert!(code.header("location").starts_with(CALLBACK));
    let audit = api
        .app
        .store()
        .audit("demo", AuditSince::Number(0), 100)
        .await;
    let entries = audit.unwrap().entries;
    let signed_in = entries.iter().find(|entry| entry.event == "signed_in");
    let signed_in = signed_in.unwrap();
    assert_eq!(signed_in.detail.as_deref(), Some("email link"));
    assert_eq!(signed_in.client_id.as_deref(), Some("app"));

    let mut other = Browser {
        cookie: before.clone(),
    };
    for again in [
        other.post(&api, (&page, "email"), &[]).await,
        other.get(&api, &link).await,
        browser.get(&api, &link).await,
        Browser::default().get(&api, &link).await,
    ] {
        assert_eq!(again.status, 400, "{}", again.text());
        assert!(again.text().contains("was used already"));
    }
}

#[tokio::test]
async fn only_the_browser_that_requested_a_link_can_use_it() {
    let (api, mailbox) = connected().await;
    write_to(&api, ADDRESS).await;
    let (mut browser, link) = requested(&api, &mailbox, 1).await;
    let mut other = Browser::default();
    let refused = other.get(&api, &link).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.text().contains("the other browser"),
        "{}",
        refused.text()
    );
    assert!(!refused.text().contains("<form"));
    let page = browser.get(&api, &link).await;
    // The other browser posts the form with a form token of its own.
    let device = other.get(&api, "/device").await;
    let (_, own) = crate::pages::form(&device, "code");
    let body = own.replace("step=code", "step=email");
    let posted = other.send(&api, &link, &[], body).await;
    assert_eq!(posted.status, 400, "{}", posted.text());
    only_from_here(&api, &browser, (&page, "email"), "").await;
    let opened = browser.post(&api, (&page, "email"), &[]).await;
    assert_eq!(opened.status, 303, "it was not used up: {}", opened.text());
}

#[tokio::test]
async fn a_link_is_invalid_after_15_minutes_and_after_changes_of_the_user() {
    let (api, mailbox) = connected().await;
    write_to(&api, ADDRESS).await;
    let (mut browser, link) = requested(&api, &mailbox, 1).await;
    api.clock.advance(Duration::from_secs(15 * 60 - 1));
    assert_eq!(browser.get(&api, &link).await.status, 200);
    api.clock.advance(Duration::from_secs(1));
    assert_eq!(browser.get(&api, &link).await.status, 400);

    let (mut browser, link) = requested(&api, &mailbox, 2).await;
    write_to(&api, "new@example.org").await;
    assert_eq!(browser.get(&api, &link).await.status, 400, "the address");
    write_to(&api, ADDRESS).await;
    let page = browser.get(&api, &link).await;
    assert_eq!(page.status, 200);
    let password = Secret::new("alice-9876");
    let set = api.directory.set_password(&alice(), &password).await;
    set.unwrap();
    let opened = browser.post(&api, (&page, "email"), &[]).await;
    assert_eq!(opened.status, 400, "the password");
    for text in ["", "?token=", "?token=x", "?token=AAAAAAAAAAAAAAAAAAAAAAAA"] {
        let page = browser.get(&api, &format!("/auth/email{text}")).await;
        assert_eq!(page.status, 400, "{text}");
    }
}

#[tokio::test]
async fn a_request_responds_alike_for_every_name() {
    let (api, mailbox) = connected().await;
    write_to(&api, ADDRESS).await;
    let path = format!("/auth?{QUERY}");
    let mut browser = Browser::default();
    let first = ask(&api, &mut browser, (&path, "alice")).await;
    // The runtime has one thread, so a message that was written before the response would be here.
    assert_eq!(mailbox.len(), 0, "nothing is looked up before the response");
    assert_eq!(first.status, 200);
    mailbox.messages(1).await;
    for name in [
        "nobody",
        "demo",
        "guest",
        "nobody@example.org",
        "' or 1=1 --",
    ] {
        let page = ask(&api, &mut browser, (&path, name)).await;
        assert_eq!(
            (page.status, page.text()),
            (first.status, first.text()),
            "{name}"
        );
    }
    for _ in 0..8 {
        let page = ask(&api, &mut browser, (&path, "alice")).await;
        assert_eq!(page.text(), first.text());
    }
    let refused = loop {
        let page = ask(&api, &mut browser, (&path, "nobody")).await;
        if page.status != 200 {
            break page;
        }
    };
    assert_eq!(refused.status, 429, "by address: {}", refused.text());
    mailbox.messages(5).await;
}

#[tokio::test]
async fn a_device_is_connected_with_a_link_and_the_second_factor_is_still_asked_for() {
    let (api, mailbox) = connected().await;
    write_to(&api, ADDRESS).await;
    let factor = SecondFactor {
        sealed_secret: Vec::new(),
        used_step: 0,
        recovery_codes: 0,
    };
    let inserted = api
        .app
        .store()
        .insert_second_factor(&alice(), &factor, &[])
        .await;
    assert!(inserted.unwrap());
    let body = json!({"client_id": "app"});
    let codes = api.post("/api/v4/oauth/device", &body).await;
    let typed = codes.json()["user_code"].as_str().unwrap().to_owned();
    let path = format!("/device?user_code={typed}&step=confirm");
    let mut browser = Browser::default();
    let asked = ask(&api, &mut browser, (&path, "alice")).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let page = browser.get(&api, &link(&mailbox, 1).await).await;
    let opened = browser.post(&api, (&page, "email"), &[]).await;
    assert_eq!(opened.header("location"), path);
    let asked = browser.get(&api, &path).await;
    assert!(
        asked.text().contains("Two-step sign-in"),
        "{}",
        asked.text()
    );
    assert!(!asked.text().contains("Connect a device"));
}

#[tokio::test]
async fn the_button_is_there_only_where_a_link_can_be_sent() {
    let (api, mailbox) = connected().await;
    let button = "name=\"by\" value=\"email\"";
    let mut browser = Browser::default();
    let short = browser.get(&api, &format!("/auth?{QUERY}")).await;
    assert!(short.text().contains(button));
    let long = format!("/auth?{QUERY}&nonce={}", "n".repeat(2048));
    let page = browser.get(&api, &long).await;
    assert_eq!(page.status, 200);
    assert!(!page.text().contains(button), "too long for a link");
    let without = Api::start().await;
    let page = Browser::default()
        .get(&without, &format!("/auth?{QUERY}"))
        .await;
    assert!(!page.text().contains(button), "no emails are sent");
    // On a page of the service, an address alone does not name a database.
    let page = browser.get(&api, "/account").await;
    let fields = [("username", ADDRESS), BY_EMAIL];
    let missing = browser.post(&api, (&page, "sign_in"), &fields).await;
    assert_eq!(missing.status, 400);
    assert!(
        missing.text().contains("database-error"),
        "{}",
        missing.text()
    );
    let fields = [("database", "demo"), BY_EMAIL];
    let missing = browser.post(&api, (&page, "sign_in"), &fields).await;
    assert!(
        missing.text().contains("username-error"),
        "{}",
        missing.text()
    );
    assert_eq!(mailbox.len(), 0);
}
