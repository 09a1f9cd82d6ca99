//! Passkeys of people of every kind, with an authenticator in software (API.md, "Pages").

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::flows::redemption;
use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::pages::{Browser, Page, authorization};
use crate::passkey_authenticator::{Authenticator, UP, UV};
use crate::users::claims;

/// The address by which the people of the tests reach the node, and so its passkeys' origin.
pub(crate) const SITE: &str = "http://api.localhost";
const USERS: &str = "/api/v4/users";

/// A node of the tenant `shop`, and what its owner may do.
pub(crate) struct Shop {
    pub(crate) node: Node,
    pub(crate) owner: String,
    _operator: Operator,
}

impl Shop {
    pub(crate) async fn open() -> Self {
        let operator = operator().await;
        let node = Node::start(&operator).await;
        let tokens = node.sign_in("shop", "shop", "owner-password").await;
        Self {
            node,
            owner: tokens["access_token"].as_str().unwrap().to_owned(),
            _operator: operator,
        }
    }

    pub(crate) fn browser(&self) -> Browser<'_> {
        Browser::at(&self.node.url)
    }

    /// A request of the owner. Returns the answer's text.
    pub(crate) async fn owner(&self, method: Method, path: &str, body: Value) -> String {
        let request = Client::new().request(method, format!("{}{path}", self.node.url));
        let request = request.bearer_auth(&self.owner).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        text
    }

    /// Makes a user, whose password is `name` with `-password`.
    pub(crate) async fn user(&self, name: &str, more: Value) {
        let mut body = json!({"name": name, "password": format!("{name}-password")});
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        self.owner(Method::POST, USERS, body).await;
    }

    /// A browser in which the user has signed in by the password.
    pub(crate) async fn signed_in(&self, user: &str) -> Browser<'_> {
        let mut browser = self.browser();
        let page = browser.get("/account").await;
        let password = match user {
            "shop" => "owner-password".to_owned(),
            user => format!("{user}-password"),
        };
        let fields = [
            ("username", user),
            ("password", &*password),
            ("database", "shop"),
        ];
        let page = browser.submit(&page, "sign_in", &fields).await;
        assert!(page.text.contains("Your account"), "{}", page.text);
        browser
    }

    /// An authenticator with a new passkey of the user.
    pub(crate) async fn registered(&self, user: &str) -> Authenticator {
        let mut device = Authenticator::new(SITE);
        self.register(user, &mut device).await;
        device
    }

    pub(crate) async fn register(&self, user: &str, device: &mut Authenticator) {
        let mut browser = self.signed_in(user).await;
        let page = browser.get("/account").await;
        let page = browser.submit(&page, "begin_passkey", &[]).await;
        let response = device.create(&question(&page), UP | UV).to_string();
        let response = [("credential", &*response)];
        let page = browser.submit(&page, "add_passkey", &response).await;
        assert!(page.text.contains("The passkey is added"), "{}", page.text);
    }

    /// The page after a sign-in by passkey with the client.
    pub(crate) async fn sign_in(&self, device: &mut Authenticator) -> Page {
        let mut browser = self.browser();
        let page = browser.get(&authorization("app")).await;
        let response = device.get(&question(&page), UP | UV);
        answered(&mut browser, &page, &response).await
    }

    /// Signs in with a passkey; returns the name of the user in the token.
    async fn token_of(&self, device: &mut Authenticator) -> String {
        let mut browser = self.browser();
        let page = browser.get(&authorization("app")).await;
        let response = device.get(&question(&page), UP | UV);
        let consent = answered(&mut browser, &page, &response).await;
        let allowed = [("decision", "allow")];
        let back = browser.submit(&consent, "decide", &allowed).await;
        let grant = redemption("app", &back.parameter("code"));
        let (status, tokens) = self.node.post("/api/v4/oauth", None, grant).await;
        assert_eq!(status, 200, "{tokens}");
        let token = tokens["access_token"].as_str().unwrap();
        claims(token)["uid"].as_str().unwrap().to_owned()
    }
}

/// The options of a page for an authenticator.
pub(crate) fn question(page: &Page) -> Value {
    let (_, rest) = page.text.split_once("data-options=\"").expect(&page.text);
    let options = rest.split('"').next().unwrap();
    let options = options.replace("&quot;", "\"").replace("&amp;", "&");
    serde_json::from_str(&options).unwrap()
}

pub(crate) async fn answered(browser: &mut Browser<'_>, page: &Page, response: &Value) -> Page {
    let response = response.to_string();
    let fields = [("credential", &*response)];
    browser.submit(page, "passkey", &fields).await
}

pub(crate) fn assert_refused(page: &Page, why: &str) {
    assert_eq!(page.status, 400, "{why}: {}", page.text);
    let text = "This passkey does not work here";
    assert!(page.text.contains(text), "{why}: {}", page.text);
}

#[tokio::test]
async fn owners_users_and_members_get_tokens_by_passkey() {
    let shop = Shop::open().await;
    shop.user("rita", json!({})).await;
    shop.user("mia", json!({"kind": "member", "user_group": "people"}))
        .await;
    for user in ["shop", "rita", "mia"] {
        let mut device = shop.registered(user).await;
        assert_eq!(shop.token_of(&mut device).await, user);
        assert_eq!(shop.token_of(&mut device).await, user, "and again");
    }
}

#[tokio::test]
async fn a_passkey_stays_with_a_user_who_is_converted_and_ends_with_the_user() {
    let shop = Shop::open().await;
    let people = json!({"kind": "member", "user_group": "people"});
    shop.user("mia", people.clone()).await;
    let mut device = shop.registered("mia").await;
    let mia = format!("{USERS}/mia");
    shop.owner(Method::PATCH, &mia, json!({"disabled": true}))
        .await;
    assert_refused(&shop.sign_in(&mut device).await, "the user is disabled");
    shop.owner(Method::PATCH, &mia, json!({"disabled": false}))
        .await;
    assert_eq!(shop.token_of(&mut device).await, "mia");
    let role = json!({"kind": "role", "user_group": "people"});
    shop.owner(Method::PATCH, &mia, role).await;
    assert_eq!(shop.token_of(&mut device).await, "mia");
    shop.owner(Method::PATCH, &mia, json!({"default_user": true}))
        .await;
    assert_refused(
        &shop.sign_in(&mut device).await,
        "the default user does not sign in",
    );
    shop.owner(Method::PATCH, &mia, json!({"default_user": false}))
        .await;
    assert_eq!(shop.token_of(&mut device).await, "mia");
    shop.owner(Method::DELETE, &mia, Value::Null).await;
    assert_refused(&shop.sign_in(&mut device).await, "there is no such user");
    shop.user("mia", people).await;
    assert_refused(&shop.sign_in(&mut device).await, "another mia");
}

#[tokio::test]
async fn a_person_renames_and_removes_a_passkey() {
    let shop = Shop::open().await;
    let mut device = shop.registered("shop").await;
    let mut browser = shop.signed_in("shop").await;
    let page = browser.get("/account").await;
    let renamed = [("name", " <Key> & \"ring\" ")];
    let page = browser.submit(&page, "rename_passkey", &renamed).await;
    let shown = "<strong>&lt;Key&gt; &amp; &quot;ring&quot;</strong>";
    assert!(page.text.contains(shown), "{}", page.text);
    for wrong in [" ", &"n".repeat(65)] {
        let fields = [("name", wrong)];
        let refused = browser.submit(&page, "rename_passkey", &fields).await;
        assert_eq!(refused.status, 400, "{wrong}");
        let expected = "Give a name of 1 to 64 characters without control characters.";
        assert!(refused.text.contains(expected), "{}", refused.text);
    }
    let removed = browser.submit(&page, "remove_passkey", &[]).await;
    let gone = removed.text.contains("The passkey is removed.");
    assert!(gone && !removed.text.contains(shown), "{}", removed.text);
    assert_refused(&shop.sign_in(&mut device).await, "it is removed");
    let audit = "/api/v4/audit?limit=100";
    let audit = shop.owner(Method::GET, audit, Value::Null).await;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    let mut events = Vec::new();
    for event in audit["events"].as_array().unwrap() {
        let name = event["event"].as_str().unwrap();
        if name.starts_with("passkey_") {
            events.push((name, event["detail"].as_str().unwrap()));
        }
    }
    events.sort_unstable();
    let name = "<Key> & \"ring\"";
    assert_eq!(
        events,
        [
            ("passkey_added", "A browser"),
            ("passkey_removed", name),
            ("passkey_renamed", name),
        ]
    );
}
