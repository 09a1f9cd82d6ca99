//! Passkeys over time, their emails and events, with an authenticator in software. Forged
//! responses are tested in `tests/api`, Chromium's authenticator in `tests/clients/browser`.

#[expect(dead_code, reason = "it also serves the black-box tests")]
mod authenticator;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_identity::{AuditSince, UserChange, UserKey};

use crate::fixture::{Api, TestResponse};
use crate::page_forms::only_from_here;
use crate::pages::{Browser, QUERY, signed_in};
use crate::ports::Mailbox;
use authenticator::{Authenticator, UP, UV};

const SITE: &str = "http://localhost:8080";
const REFUSED: &str = "This passkey does not work here";

async fn start() -> Api {
    Api::at(SITE, |builder| builder).await
}

/// The value of an attribute on a page, without its escapes.
fn attribute(page: &TestResponse, mark: &str) -> String {
    let (_, rest) = page.text().split_once(mark).expect(mark);
    let text = rest.split('"').next().unwrap();
    text.replace("&quot;", "\"").replace("&amp;", "&")
}

fn question(page: &TestResponse) -> Value {
    serde_json::from_str(&attribute(page, "data-options=\"")).unwrap()
}

fn sealed(page: &TestResponse) -> String {
    attribute(page, "name=\"sealed\" value=\"")
}

/// The page on which a passkey is created.
async fn creation(api: &Api, browser: &mut Browser) -> TestResponse {
    let account = browser.get(api, "/account").await;
    let page = browser.post(api, (&account, "begin_passkey"), &[]).await;
    assert_eq!(page.status, 200, "{}", page.text());
    page
}

async fn create(
    api: &Api,
    browser: &mut Browser,
    (page, response): (&TestResponse, &Value),
) -> TestResponse {
    let (sealed, response) = (sealed(page), response.to_string());
    let fields = [("sealed", &*sealed), ("credential", &*response)];
    // The form of the page has empty fields of these names, which the script fills in.
    browser.post(api, (page, "add_passkey"), &fields).await
}

/// An authenticator that has a passkey of alice.
async fn registered(api: &Api) -> Authenticator {
    registered_in(api, signed_in(api).await, Authenticator::new(SITE)).await
}

async fn registered_in(
    api: &Api,
    mut browser: Browser,
    mut device: Authenticator,
) -> Authenticator {
    let page = creation(api, &mut browser).await;
    let response = device.create(&question(&page), UP | UV);
    let added = create(api, &mut browser, (&page, &response)).await;
    assert!(
        added.text().contains("The passkey is added"),
        "{}",
        added.text()
    );
    device
}

async fn sign_in(
    api: &Api,
    browser: &mut Browser,
    (page, response): (&TestResponse, &Value),
) -> TestResponse {
    let (sealed, response) = (sealed(page), response.to_string());
    let fields = [("sealed", &*sealed), ("credential", &*response)];
    browser.post(api, (page, "passkey"), &fields).await
}

fn assert_refused(response: &TestResponse, why: &str) {
    assert_eq!(response.status, 400, "{why}: {}", response.text());
    assert!(
        response.text().contains(REFUSED),
        "{why}: {}",
        response.text()
    );
}

#[tokio::test]
async fn a_passkey_signs_in_and_comes_back_to_the_page() {
    let api = start().await;
    let mut device = registered(&api).await;
    let path = format!("/auth?{QUERY}");
    let mut browser = Browser::default();
    let page = browser.get(&api, &path).await;
    let policy = page.header("content-security-policy");
    assert!(policy.ends_with("; script-src 'self'"), "{policy}");
    let response = device.get(&question(&page), UP | UV);
    only_from_here(&api, &browser, (&page, "passkey"), "").await;
    let opened = sign_in(&api, &mut browser, (&page, &response)).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
    assert_eq!(opened.header("location"), path);
    let account = browser.get(&api, "/account").await;
    assert!(account.text().contains("<strong>alice</strong>"));
    assert!(account.text().contains("last used just now"));
    let policy = account.header("content-security-policy");
    assert!(!policy.contains("script-src"), "{policy}");
}

#[tokio::test]
async fn a_question_lasts_an_hour() {
    let api = start().await;
    let mut device = registered(&api).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    api.clock.advance(Duration::from_hours(1));
    let late = device.get(&question(&page), UP | UV);
    let refused = sign_in(&api, &mut browser, (&page, &late)).await;
    assert_refused(&refused, "an hour later");
    // The page of the refusal has a new question.
    let response = device.get(&question(&refused), UP | UV);
    let opened = sign_in(&api, &mut browser, (&refused, &response)).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
}

#[tokio::test]
async fn a_passkey_is_added_after_a_recent_sign_in_only() {
    let api = start().await;
    let mut browser = signed_in(&api).await;
    let account = browser.get(&api, "/account").await;
    only_from_here(&api, &browser, (&account, "begin_passkey"), "").await;
    api.clock.advance(Duration::from_mins(10));
    let asked = browser.post(&api, (&account, "begin_passkey"), &[]).await;
    assert!(asked.text().contains("Is it you?"), "{}", asked.text());
    assert!(!asked.text().contains("data-options"));
    let wrong = [("password", "alice4321")];
    let refused = browser.post(&api, (&asked, "begin_passkey"), &wrong).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let right = [("password", "alice1234")];
    let page = browser.post(&api, (&asked, "begin_passkey"), &right).await;
    let mut device = Authenticator::new(SITE);
    let unverified = device.create(&question(&page), UP);
    let refused = create(&api, &mut browser, (&page, &unverified)).await;
    assert_refused(&refused, "the authenticator did not verify the person");
    let page = creation_with(&api, &mut browser, &right).await;
    let response = device.create(&question(&page), UP | UV);
    let added = create(&api, &mut browser, (&page, &response)).await;
    assert!(
        added.text().contains("The passkey is added"),
        "{}",
        added.text()
    );
    let page = creation_with(&api, &mut browser, &right).await;
    let excluded = question(&page)["excludeCredentials"].clone();
    assert_eq!(excluded.as_array().map(Vec::len), Some(1));
    let response = device.create(&question(&page), UP | UV);
    let again = create(&api, &mut browser, (&page, &response)).await;
    assert_eq!(again.status, 409, "known already: {}", again.text());
}

async fn creation_with(
    api: &Api,
    browser: &mut Browser,
    password: &[(&str, &str)],
) -> TestResponse {
    let account = browser.get(api, "/account").await;
    browser
        .post(api, (&account, "begin_passkey"), password)
        .await
}

#[tokio::test]
async fn removed_passkeys_and_those_of_dropped_users_are_refused() {
    let api = start().await;
    let mut device = registered(&api).await;
    let mut other = registered(&api).await;
    let mut browser = signed_in(&api).await;
    let account = browser.get(&api, "/account").await;
    let id = [("passkey", &*device.id())];
    let removed = browser.post(&api, (&account, "remove_passkey"), &id).await;
    assert!(
        removed.text().contains("The passkey is removed"),
        "{}",
        removed.text()
    );
    for (device, why) in [(&mut device, "removed"), (&mut other, "dropped")] {
        if why == "dropped" {
            let alice = UserKey::new("demo", "alice");
            api.directory.drop_user(&alice).await.unwrap();
        }
        let mut browser = Browser::default();
        let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
        let response = device.get(&question(&page), UP | UV);
        let refused = sign_in(&api, &mut browser, (&page, &response)).await;
        assert_refused(&refused, why);
    }
}

#[tokio::test]
async fn a_passkey_is_removed_after_a_recent_sign_in_or_with_the_password_only() {
    let api = start().await;
    let device = registered(&api).await;
    let mut browser = signed_in(&api).await;
    let account = browser.get(&api, "/account").await;
    only_from_here(&api, &browser, (&account, "remove_passkey"), "").await;
    api.clock.advance(Duration::from_mins(10));
    let (removed, key) = ("The passkey is removed", UserKey::new("demo", "alice"));
    let left = async || api.app.store().passkeys_of_user(&key).await.unwrap().len();
    let id = ("passkey", &*device.id());
    let asked = browser
        .post(&api, (&account, "remove_passkey"), &[id])
        .await;
    assert!(asked.text().contains("Is it you?"), "{}", asked.text());
    let kept = format!("name=\"passkey\" value=\"{}\"", id.1);
    assert!(asked.text().contains(&kept), "{}", asked.text());
    let wrong = [id, ("password", "alice4321")];
    let refused = browser.post(&api, (&asked, "remove_passkey"), &wrong).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert_eq!(left().await, 1);
    let right = [id, ("password", "alice1234")];
    let done = browser
        .post(&api, (&refused, "remove_passkey"), &right)
        .await;
    assert!(done.text().contains(removed), "{}", done.text());
    assert_eq!(left().await, 0);
}

#[tokio::test]
async fn a_person_has_at_most_20_passkeys() {
    let api = start().await;
    let mut browser = signed_in(&api).await;
    // All questions are asked while there is room.
    let mut questions = Vec::new();
    for _ in 0..22 {
        questions.push(creation(&api, &mut browser).await);
    }
    let mut devices = Vec::new();
    for page in questions.drain(..20) {
        let mut device = Authenticator::new(SITE);
        let response = device.create(&question(&page), UP | UV);
        let added = create(&api, &mut browser, (&page, &response)).await;
        assert_eq!(added.status, 200, "{}", added.text());
        devices.push(device);
    }
    let full = "you have the most that are allowed";
    let more = async |browser: &mut Browser, page: &TestResponse| {
        let response = Authenticator::new(SITE).create(&question(page), UP | UV);
        create(&api, browser, (page, &response)).await
    };
    let account = browser.get(&api, "/account").await;
    for refused in [
        more(&mut browser, &questions[0]).await,
        browser.post(&api, (&account, "begin_passkey"), &[]).await,
    ] {
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains(full), "{}", refused.text());
    }
    let key = UserKey::new("demo", "alice");
    let stored = api.app.store().passkeys_of_user(&key).await.unwrap();
    assert_eq!(stored.len(), 20);
    let id = [("passkey", &*devices[0].id())];
    browser.post(&api, (&account, "remove_passkey"), &id).await;
    let added = more(&mut browser, &questions[1]).await;
    assert_eq!(added.status, 200, "{}", added.text());
}

#[tokio::test]
async fn a_client_of_a_database_takes_no_passkey_of_another() {
    let api = start().await;
    let owner = [
        ("username", "lonely"),
        ("password", "lonely1234"),
        ("database", "lonely"),
    ];
    let mut browser = Browser::default();
    let page = browser.get(&api, "/account").await;
    browser.post(&api, (&page, "sign_in"), &owner).await;
    let mut device = registered_in(&api, browser, Authenticator::new(SITE)).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    let response = device.get(&question(&page), UP | UV);
    let refused = sign_in(&api, &mut browser, (&page, &response)).await;
    assert_refused(&refused, "another database");
    let page = browser.get(&api, "/account").await;
    let response = device.get(&question(&page), UP | UV);
    let opened = sign_in(&api, &mut browser, (&page, &response)).await;
    assert_eq!(opened.status, 303, "{}", opened.text());
}

#[tokio::test]
async fn the_user_gets_an_email_and_the_log_an_event() {
    let mailbox = Mailbox::default();
    let mail = Arc::new(mailbox.clone());
    let api = Api::at(SITE, |builder| builder.mailer(Some(mail))).await;
    let alice = UserKey::new("demo", "alice");
    let change = UserChange {
        email: Some(Some("alice@example.org".to_owned())),
        ..UserChange::default()
    };
    api.directory.change_user(&alice, change).await.unwrap();
    let mut device = registered(&api).await;
    let added = mailbox.messages(1).await.remove(0);
    assert_eq!(added.to, "alice@example.org");
    let news = "can be used to sign in as you from now on";
    assert!(added.text.contains(news), "{}", added.text);
    let mut browser = Browser::default();
    for flags in [UP, UP | UV] {
        let page = browser.get(&api, "/account").await;
        let response = device.get(&question(&page), flags);
        sign_in(&api, &mut browser, (&page, &response)).await;
    }
    let account = browser.get(&api, "/account").await;
    let id = [("passkey", &*device.id())];
    browser.post(&api, (&account, "remove_passkey"), &id).await;
    let removed = mailbox.messages(2).await.remove(1);
    let news = "cannot be used to sign in as you any more";
    assert!(removed.text.contains(news), "{}", removed.text);
    let audit = api.app.store().audit("demo", AuditSince::Number(0), 100);
    let entries = audit.await.unwrap().entries;
    let own = entries
        .iter()
        .skip_while(|entry| entry.event != "signed_in");
    let events: Vec<_> = own
        .map(|entry| (&*entry.event, entry.detail.as_deref()))
        .collect();
    assert_eq!(
        events,
        [
            ("signed_in", None),
            ("passkey_added", Some("A browser")),
            ("sign_in_failed", Some("passkey")),
            ("signed_in", Some("passkey")),
            ("passkey_removed", Some("A browser")),
        ]
    );
}

#[tokio::test]
async fn at_an_address_without_a_name_there_are_none() {
    let api = Api::start().await;
    let mut browser = signed_in(&api).await;
    let account = browser.get(&api, "/account").await;
    assert!(!account.text().contains("Passkeys"), "{}", account.text());
    let page = Browser::default().get(&api, "/account").await;
    assert!(!page.text().contains("passkey"), "{}", page.text());
    let policy = page.header("content-security-policy");
    assert!(!policy.contains("script-src"), "{policy}");
}
