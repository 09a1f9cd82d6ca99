//! Tests that a link in an email works once, and only for its purpose.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};
use tidegate_identity::{NewUser, TenantName, UserChange, UserKey, UserName};
use tidegate_oauth::{ClientChange, NewClient};

use crate::fixture::{Api, password, request};
use crate::pages::{Browser, CALLBACK};
use crate::ports::{Mailbox, connected};

const SIGN_UP: &str = "/signup/?client_id=open&parentdb=demo\
    &redirect_uri=http%3A%2F%2F127.0.0.1%3A5173%2Fcallback";
const ADDRESS: &str = "alice@example.org";

fn alice() -> UserKey {
    UserKey::new("demo", "alice")
}

async fn write_to(api: &Api, email: Option<&str>) {
    let change = UserChange {
        email: Some(email.map(str::to_owned)),
        ..UserChange::default()
    };
    let changed = api.directory.change_user(&alice(), change).await;
    changed.unwrap();
}

/// The path of the link in the last of `count` messages.
async fn link(mailbox: &Mailbox, path: &str, count: usize) -> String {
    let message = mailbox.messages(count).await.pop().unwrap();
    let (_, token) = message.text.split_once("?token=").unwrap();
    format!("{path}?token={}", token.split_whitespace().next().unwrap())
}

async fn reset_link(api: &Api, mailbox: &Mailbox, count: usize) -> String {
    let mut browser = Browser::default();
    let page = browser.get(api, "/reset").await;
    let fields = [("username", "alice"), ("database", "demo")];
    let asked = browser.post(api, (&page, "ask"), &fields).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    link(mailbox, "/reset", count).await
}

async fn new_alice(api: &Api) {
    api.directory.drop_user(&alice()).await.unwrap();
    let demo = TenantName::parse("demo").unwrap();
    let new = NewUser {
        email: Some(ADDRESS.to_owned()),
        ..NewUser::new(demo, UserName::parse("alice").unwrap())
    };
    api.directory.create_user(new).await.unwrap();
}

#[tokio::test]
async fn a_reset_link_is_bound_to_its_user_and_address() {
    let (api, mailbox) = connected().await;
    write_to(&api, Some(ADDRESS)).await;
    let old = reset_link(&api, &mailbox, 1).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &old).await;
    assert_eq!(page.status, 200);
    for email in [Some("new@example.org"), None] {
        write_to(&api, email).await;
        assert_eq!(browser.get(&api, &old).await.status, 400, "{email:?}");
        let chosen = [("password", "taken-over-1")];
        let set = browser.post(&api, (&page, "choose"), &chosen).await;
        assert_eq!(set.status, 400, "{email:?}");
    }
    api.token("alice").await;

    // The new user differs from the previous one only in that it has never had a password.
    new_alice(&api).await;
    let old = reset_link(&api, &mailbox, 2).await;
    assert_eq!(browser.get(&api, &old).await.status, 200);
    api.clock.advance(std::time::Duration::from_secs(1));
    new_alice(&api).await;
    assert_eq!(browser.get(&api, &old).await.status, 400);
}

async fn open_client(api: &Api) {
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
}

async fn sign_up_link(api: &Api, mailbox: &Mailbox, name: &str, count: usize) -> String {
    let mut browser = Browser::default();
    let page = browser.get(api, SIGN_UP).await;
    let (email, password) = (format!("{name}@example.org"), format!("{name}1234"));
    let fields = [
        ("username", name),
        ("email", &email),
        ("password", &password),
    ];
    let sent = browser.post(api, (&page, "sign_up"), &fields).await;
    assert_eq!(sent.status, 200, "{}", sent.text());
    link(mailbox, "/signup/confirm", count).await
}

#[tokio::test]
async fn a_sign_up_link_makes_one_account() {
    let (api, mailbox) = connected().await;
    open_client(&api).await;
    let confirm = sign_up_link(&api, &mailbox, "zoey", 1).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &confirm).await;
    // Chromium applies `form-action` to the redirects after the form, which lead to the client.
    let policy = page.header("content-security-policy");
    assert!(
        policy.ends_with("form-action 'self' http://127.0.0.1:5173"),
        "{policy}"
    );
    let taken = NewUser::new(
        TenantName::parse("demo").unwrap(),
        UserName::parse("zoey").unwrap(),
    );
    api.directory.create_user(taken).await.unwrap();
    let refused = browser.post(&api, (&page, "confirm"), &[]).await;
    assert_eq!(refused.status, 409, "another person was faster");
    // The page has no field for another name.
    assert!(refused.text().contains("sign up again with another name"));
    let zoey = UserKey::new("demo", "zoey");
    api.directory.drop_user(&zoey).await.unwrap();
    let made = browser.post(&api, (&page, "confirm"), &[]).await;
    assert_eq!(made.status, 303, "what failed can be repeated");
    api.token("zoey").await;
    api.directory.drop_user(&zoey).await.unwrap();
    let mut stranger = Browser::default();
    let page = stranger.get(&api, &confirm).await;
    let again = stranger.post(&api, (&page, "confirm"), &[]).await;
    assert_eq!(again.status, 400, "{}", again.text());
    assert!(again.text().contains("was used already"));
    let sign_in = request(Method::POST, "/api/v4/oauth").header("content-type", "application/json");
    let body = password("zoey").to_string();
    let gone = api.call(sign_in.body(body).unwrap()).await;
    assert_eq!(gone.json()["error"], "invalid_grant");
}

#[tokio::test]
async fn an_address_gets_five_sign_up_emails_an_hour() {
    let (api, mailbox) = connected().await;
    open_client(&api).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, SIGN_UP).await;
    let mut ask = async |number: usize, email: &str| {
        let name = format!("zoey-{number}");
        let fields = [
            ("username", &*name),
            ("email", email),
            ("password", "zoey1234"),
        ];
        browser.post(&api, (&page, "sign_up"), &fields).await.status
    };
    for number in 0..5 {
        assert_eq!(ask(number, "zoey@example.org").await, 200);
    }
    assert_eq!(ask(5, "Zoey@Example.org").await, 429);
    assert_eq!(ask(6, "other@example.org").await, 200);
    assert_eq!(mailbox.messages(6).await[5].to, "other@example.org");
}

#[tokio::test]
async fn a_sign_up_link_of_a_client_without_sign_up_is_refused_at_once() {
    let (api, mailbox) = connected().await;
    open_client(&api).await;
    let confirm = sign_up_link(&api, &mailbox, "zoey", 1).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &confirm).await;
    assert_eq!(page.status, 200);
    let closed = ClientChange {
        allow_signup: Some(false),
        ..ClientChange::default()
    };
    let changed = api.clients.change_client("demo", "open", closed).await;
    changed.unwrap();
    let text = "made by its owner";
    let shown = browser.get(&api, &confirm).await;
    assert_eq!(shown.status, 403);
    assert!(shown.text().contains(text), "{}", shown.text());
    let posted = browser.post(&api, (&page, "confirm"), &[]).await;
    assert_eq!(posted.status, 403);
    api.clients.drop_client("demo", "open").await.unwrap();
    api.clock.advance(std::time::Duration::from_secs(1));
    open_client(&api).await;
    let shown = browser.get(&api, &confirm).await;
    assert_eq!(
        shown.status, 403,
        "another client of this id sent no message"
    );
}

/// The claims `email` and `email_verified` of the password grant's user.
async fn email_claims(api: &Api, user: &str, password: &str) -> (Value, Option<Value>) {
    let body = json!({
        "grant_type": "password", "username": user, "password": password, "database": "demo",
        "client_id": "app", "scope": "openid email",
    });
    let tokens = api.post("/api/v4/oauth", &body).await.json();
    let token = tokens["access_token"].as_str().unwrap();
    let info = request(Method::GET, "/api/v4/oauth/userinfo")
        .header("authorization", format!("Bearer {token}"));
    let info = api.call(info.body(String::new()).unwrap()).await.json();
    let payload = tokens["id_token"].as_str().unwrap().split('.').nth(1);
    let payload = URL_SAFE_NO_PAD.decode(payload.unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&payload).unwrap();
    let of = |claims: &Value| {
        let verified = claims.get("email_verified").cloned();
        (claims["email"].clone(), verified)
    };
    assert_eq!(of(&info), of(&claims));
    of(&info)
}

#[tokio::test]
async fn an_address_is_verified_after_a_link_to_it_was_used() {
    let (api, mailbox) = connected().await;
    open_client(&api).await;
    let confirm = sign_up_link(&api, &mailbox, "zoey", 1).await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &confirm).await;
    browser.post(&api, (&page, "confirm"), &[]).await;
    let verified = |email: &str| (json!(email), Some(json!(true)));
    let zoey = email_claims(&api, "zoey", "zoey1234").await;
    assert_eq!(zoey, verified("zoey@example.org"));

    // The owner entered the address. The person who follows a link receives messages there.
    write_to(&api, Some(ADDRESS)).await;
    let alice = email_claims(&api, "alice", "alice1234").await;
    assert_eq!(alice, (json!(ADDRESS), None));
    let reset = reset_link(&api, &mailbox, 2).await;
    let page = browser.get(&api, &reset).await;
    let chosen = [("password", "another-1234")];
    let set = browser.post(&api, (&page, "choose"), &chosen).await;
    assert_eq!(set.status, 200, "{}", set.text());
    let alice = email_claims(&api, "alice", "another-1234").await;
    assert_eq!(alice, verified(ADDRESS));
    write_to(&api, Some("new@example.org")).await;
    let alice = email_claims(&api, "alice", "another-1234").await;
    assert_eq!(alice, (json!("new@example.org"), None));
    write_to(&api, Some(ADDRESS)).await;
    let alice = email_claims(&api, "alice", "another-1234").await;
    assert_eq!(alice, (json!(ADDRESS), None), "nothing was sent since");
    write_to(&api, None).await;
    let alice = email_claims(&api, "alice", "another-1234").await;
    assert_eq!(alice, (Value::Null, None));
}
