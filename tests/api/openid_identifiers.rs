//! How applications know a user (docs/API.md, "OpenID Connect"): `sub` and `user_id`, which a
//! person who signs up never gets from a dropped user.

use reqwest::Method;
use serde_json::{Value, json};

use crate::flows::client;
use crate::members::{GRAPHQL, USERS};
use crate::openid::{USER_INFO, id_claims, part, redeemed};
use crate::pages::{Browser, CALLBACK, Page, authorization, encoded};
use crate::personal_tokens::user;
use crate::scopes::send;
use crate::service::demo;
use crate::users::owner;

/// Submits the sign-up form of a client.
async fn sign_up(browser: &mut Browser<'_>, client_id: &str, name: &str) -> Page {
    let page = format!(
        "/signup/?client_id={client_id}&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let page = browser.get(&page).await;
    let fields = [
        ("username", name),
        ("email", "p@example.org"),
        ("password", "long-enough"),
    ];
    browser.submit(&page, "sign_up", &fields).await
}

/// Signs a new person up, and returns the claims of its ID token and its access token.
async fn new_person(client_id: &str, name: &str) -> (Value, String) {
    let mut browser = Browser::new(demo());
    let done = sign_up(&mut browser, client_id, name).await;
    assert_eq!(done.location, CALLBACK, "{}", done.text);
    let address = format!("{}&scope=openid", authorization(client_id));
    let tokens = redeemed(client_id, &browser.get(&address).await).await;
    let access = tokens["access_token"].as_str().unwrap().to_owned();
    (id_claims(&tokens).await, access)
}

async fn user_info(token: &str) -> Value {
    let response = demo().request(Method::GET, USER_INFO).bearer_auth(token);
    response.send().await.unwrap().json().await.unwrap()
}

/// The result of `tidegate.user_id()` in a method of the owner.
async fn user_id(token: &str) -> Value {
    let body = json!({"jsonrpc": "2.0", "method": "identifiers_id", "id": 1});
    let response = demo()
        .rest_with(Some(token), ("POST", "/api/v4/call"), &body)
        .await;
    let id = &response.body["result"]["data"][0]["id"];
    assert!(response.body["result"].is_object(), "{response:?}");
    id.clone()
}

/// The introspection of a token (RFC 7662).
pub(crate) async fn introspected(token: &str) -> Value {
    let body = json!({"token": token, "client_id": "demo-server",
        "client_secret": "demo-server-secret"});
    let path = ("POST", "/api/v4/oauth/introspect");
    let response = demo().rest_with(None, path, &body).await;
    assert_eq!(response.body["active"], true, "{response:?}");
    response.body
}

async fn open_client(id: &str, kind: &str) {
    let body = json!({"public": true, "confirm": false, "allow_signup": true, "signup_kind": kind,
        "signup_group": "identified"});
    client(id, body).await;
}

async fn drop_user(name: &str) {
    let dropped = owner("DELETE", &format!("{USERS}/{name}"), Value::Null).await;
    assert_eq!(dropped.status, 204, "{dropped:?}");
}

#[tokio::test]
async fn applications_and_policies_know_a_user_by_the_same_id() {
    let method = json!({"method": "identifiers_id", "q": "select tidegate.user_id() as id"});
    let made = owner("POST", "/api/v4/methods", method).await;
    assert_eq!(made.status, 201, "{made:?}");
    open_client("identifiers", "member").await;
    let (first, access) = new_person("identifiers", "ident").await;
    let id = user_id(&access).await;
    assert_eq!(id.as_str().unwrap().len(), 36, "{id}");
    assert_eq!(first["user_id"], id);
    assert_eq!(first["sub"], format!("demo/{}", id.as_str().unwrap()));
    let info = user_info(&access).await;
    assert_eq!(info, json!({"sub": first["sub"], "user_id": id}));
    let claims = part(&access, 1);
    assert_eq!(
        (&claims["user_id"], &claims["sub"]),
        (&id, &json!("demo/ident"))
    );
    assert_eq!(introspected(&access).await["user_id"], id);

    // A new member with the name of a dropped member has another `user_id` and another `sub`.
    drop_user("ident").await;
    let (second, again) = new_person("identifiers", "ident").await;
    assert_ne!(second["sub"], first["sub"]);
    assert_ne!(second["user_id"], first["user_id"]);
    assert_eq!(user_id(&again).await, second["user_id"]);
    assert_eq!(user_info(&again).await["sub"], second["sub"]);
    let read = json!({"query": "{__typename}"});
    let refused = send(&access, Method::POST, GRAPHQL, &read).await;
    assert_eq!(refused.status, 401);

    // The id of a user with a role is its name, and the default user has none.
    let token = user("ident-role").await;
    assert_eq!(user_id(&token).await, "ident-role");
    assert_eq!(part(&token, 1)["user_id"], "ident-role");
    assert_eq!(introspected(&token).await["user_id"], "ident-role");
    let body = json!({"database": "demo", "client_id": "demo-app"});
    let path = ("POST", "/api/v4/oauth/guest");
    let guest = demo().rest_with(None, path, &body).await.body;
    let guest = guest["access_token"].as_str().unwrap();
    assert_eq!(user_id(guest).await, Value::Null);
    assert_eq!(part(guest, 1).get("user_id"), None);
    assert_eq!(introspected(guest).await.get("user_id"), None);
}

#[tokio::test]
async fn the_id_of_a_dropped_user_is_not_free_as_a_name() {
    open_client("identifiers-role", "role").await;
    open_client("identifiers-member", "member").await;
    let (claims, _) = new_person("identifiers-role", "irene").await;
    assert_eq!(
        (&claims["sub"], &claims["user_id"]),
        (&json!("demo/irene"), &json!("irene"))
    );
    let member =
        json!({"name": "ivar", "kind": "member", "user_group": "identified", "id": "igor"});
    assert_eq!(owner("POST", USERS, member).await.status, 201);
    for name in ["irene", "ivar"] {
        drop_user(name).await;
    }
    for client_id in ["identifiers-role", "identifiers-member"] {
        for name in ["irene", "igor"] {
            let taken = sign_up(&mut Browser::new(demo()), client_id, name).await;
            assert_eq!(taken.status, 409, "{client_id} {name} {}", taken.text);
        }
    }
    // The owner decides who gets the name again.
    user("irene").await;
}
