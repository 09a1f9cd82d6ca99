//! Tests of `/api/v4/users/{name}/credentials` (API.md, "How a user signs in").

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::passkeys::{Shop, assert_refused};

const ANN: &str = "/api/v4/users/ann/credentials";

/// The status and the body of a request with a token.
async fn send(shop: &Shop, (method, path): (Method, &str), token: &str) -> (u16, Value) {
    let request = Client::new().request(method, format!("{}{path}", shop.node.url));
    let response = request.bearer_auth(token).send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or_default())
}

async fn token_of_ann(shop: &Shop) -> String {
    let tokens = shop.node.sign_in("shop", "ann", "ann-password").await;
    tokens["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_owner_removes_what_an_intruder_has_added() {
    let shop = Shop::open().await;
    shop.user("ann", json!({})).await;
    let mut device = shop.registered("ann").await;
    let own = token_of_ann(&shop).await;
    let mut browser = shop.signed_in("ann").await;
    for token in [&shop.owner, &own] {
        let (status, mut shown) = send(&shop, (Method::GET, ANN), token).await;
        let passkey = shown["passkeys"][0].take();
        assert_eq!((status, &passkey["name"]), (200, &json!("A browser")));
        assert!(passkey["created_at"].is_string() && passkey["used_at"].is_null());
        let expected = json!({"password": true, "passkeys": [null], "linked_accounts": [],
            "second_factor": null});
        assert_eq!(shown, expected);
    }
    let path = format!("{ANN}/passkeys%2Clinked_accounts,second_factor");
    let (status, response) = send(&shop, (Method::DELETE, &path), &shop.owner).await;
    assert_eq!(status, 204, "{response}");
    assert_refused(&shop.sign_in(&mut device).await, "it is removed");
    let (_, shown) = send(&shop, (Method::GET, ANN), &shop.owner).await;
    assert_eq!(shown["passkeys"], json!([]));
    let (status, _) = send(&shop, (Method::GET, ANN), &own).await;
    assert_eq!(status, 401, "the sessions have ended");
    let page = browser.get("/account").await;
    assert!(!page.text.contains("Your account"), "{}", page.text);
    let audit = "/api/v4/audit?limit=100";
    let (_, audit) = send(&shop, (Method::GET, audit), &shop.owner).await;
    let events = audit["events"].as_array().unwrap();
    let removed = events
        .iter()
        .find(|event| event["event"] == "passkey_removed");
    let removed = removed.unwrap();
    assert_eq!(
        (&removed["user"], &removed["actor"]),
        (&json!("ann"), &json!("shop"))
    );
}

#[tokio::test]
async fn others_and_the_owner_itself_remove_no_credentials_here() {
    let shop = Shop::open().await;
    shop.user("ann", json!({})).await;
    shop.user("mia", json!({"kind": "member", "user_group": "people"}))
        .await;
    let (own, owner) = (token_of_ann(&shop).await, &shop.owner);
    let (of_shop, of_mia) = (
        "/api/v4/users/shop/credentials",
        "/api/v4/users/mia/credentials",
    );
    for (method, path, token, expected) in [
        (Method::DELETE, &*format!("{ANN}/passkeys"), &own, 403),
        (Method::DELETE, &format!("{of_mia}/passkeys"), &own, 403),
        (Method::GET, of_mia, &own, 403),
        (Method::GET, of_shop, &own, 403),
        (Method::GET, of_shop, owner, 200),
        (
            Method::DELETE,
            &format!("{of_shop}/second_factor"),
            owner,
            403,
        ),
        (Method::DELETE, &format!("{ANN}/password"), owner, 404),
        (Method::DELETE, &format!("{ANN}/passkeys,"), owner, 400),
        (
            Method::DELETE,
            "/api/v4/users/zoe/credentials/passkeys",
            owner,
            404,
        ),
        (Method::GET, "/api/v4/users/zoe/credentials", owner, 404),
        (Method::DELETE, ANN, owner, 405),
        (Method::DELETE, &format!("{of_mia}/passkeys"), owner, 204),
    ] {
        let (status, response) = send(&shop, (method.clone(), path), token).await;
        assert_eq!(status, expected, "{method} {path}: {response}");
    }
}
