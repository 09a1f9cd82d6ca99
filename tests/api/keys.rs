//! Tests signing keys: rotation without interruption, publishing ahead of use, and that every node
//! knows them.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::service::eventually;

/// The id of the key that signed a token.
fn key_of(token: &str) -> String {
    use base64::Engine as _;
    let header = token.split('.').next().unwrap();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header);
    let header: Value = serde_json::from_slice(&header.unwrap()).unwrap();
    header["kid"].as_str().unwrap().to_owned()
}

async fn published(node: &Node) -> Vec<String> {
    let url = format!("{}/.well-known/jwks.json", node.url);
    let set: Value = node
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let keys = set["keys"].as_array().unwrap().iter();
    keys.map(|key| key["kid"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_key_is_published_before_it_signs_and_no_token_fails_over_a_rotation() {
    let operator = operator().await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let tokens = one.sign_in("shop", "shop", "owner-password").await;
    let old = tokens["access_token"].as_str().unwrap();

    // A next key does not sign before it is an hour old.
    let (code, reported) = operator.fails(&["key", "rotate"], "");
    assert!(
        code == 1 && reported.contains("less than an hour ago"),
        "{reported}"
    );
    let control = operator.root("tidegate").await;
    control
        .batch_execute(
            "update tidegate.signing_keys set created_at = created_at - interval '2 hours'",
        )
        .await
        .unwrap();
    let next = "select id from tidegate.signing_keys where state = 'next'";
    let next: String = control.query_one(next, &[]).await.unwrap().get(0);
    for node in [&one, &two] {
        let keys = published(node).await;
        assert!(
            keys.contains(&next) && keys.contains(&key_of(old)),
            "{keys:?}"
        );
    }

    let listed = operator.succeeds(&["key", "rotate"], "");
    let state = |id: &str| {
        let line = listed.lines().find(|line| line.starts_with(id)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(
        (state(&next).as_str(), state(&key_of(old)).as_str()),
        ("active", "retired")
    );
    assert_eq!(operator.succeeds(&["key", "list"], ""), listed);
    let mut refresh = tokens["refresh_token"].clone();
    for node in [&one, &two] {
        eventually("the node signs with the new key", || async {
            assert_eq!(node.status(old).await, StatusCode::OK);
            let fresh = node.sign_in("shop", "shop", "owner-password").await;
            key_of(fresh["access_token"].as_str().unwrap()) == next
        })
        .await;
        let body = json!({
            "grant_type": "refresh_token", "refresh_token": refresh, "client_id": "app",
        });
        let (status, fresh) = node.post("/api/v4/oauth", None, body).await;
        assert_eq!(status, StatusCode::OK, "{fresh}");
        let access = fresh["access_token"].as_str().unwrap();
        for other in [&one, &two] {
            assert_eq!(other.status(access).await, StatusCode::OK);
            assert_eq!(other.status(old).await, StatusCode::OK);
        }
        refresh = fresh["refresh_token"].clone();
        // The key after the next one is already published.
        assert_eq!(published(node).await.len(), 3);
    }
    // The private keys in the database are sealed: a PKCS #8 text would start with another byte.
    let sealed = "select bool_and(get_byte(sealed_private_key, 0) <> 48 \
                  and position(public_key in sealed_private_key) = 0) from tidegate.signing_keys";
    assert!(
        control
            .query_one(sealed, &[])
            .await
            .unwrap()
            .get::<_, bool>(0)
    );
    one.stop();
    two.stop();
}

#[tokio::test]
async fn one_session_is_refreshed_on_two_nodes_at_once() {
    let operator = operator().await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let first = one.sign_in("shop", "shop", "owner-password").await;
    let refresh = async |node: &Node, tokens: &Value| {
        let body = json!({
            "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"],
            "client_id": "app",
        });
        node.post("/api/v4/oauth", None, body).await
    };
    // No successor of the token has been used yet, so the slower request gets tokens too.
    let (here, there) = tokio::join!(refresh(&one, &first), refresh(&two, &first));
    for (status, tokens) in [&here, &there] {
        assert_eq!(*status, StatusCode::OK, "{tokens}");
        let access = tokens["access_token"].as_str().unwrap();
        for node in [&one, &two] {
            assert_eq!(node.status(access).await, StatusCode::OK);
        }
    }
    let (status, next) = refresh(&two, &here.1).await;
    assert_eq!(
        status,
        StatusCode::OK,
        "what one node gave, the other takes"
    );
    // The first token now counts as stolen. Using it ends the session on both nodes.
    let (status, reused) = refresh(&one, &first).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(reused["error"], "invalid_grant");
    let started = std::time::Instant::now();
    let access = next["access_token"].as_str().unwrap();
    assert_eq!(
        one.status(access).await,
        StatusCode::UNAUTHORIZED,
        "at once"
    );
    eventually("the other node knows", || async {
        two.status(access).await == StatusCode::UNAUTHORIZED
    })
    .await;
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    assert_eq!(refresh(&two, &next).await.0, StatusCode::BAD_REQUEST);
    one.stop();
    two.stop();
}

#[tokio::test]
async fn an_owners_change_on_one_node_applies_on_the_other() {
    let operator = operator().await;
    operator.succeeds(&["tenant", "set", "shop", "anonymous_sql=read"], "");
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let tokens = one.sign_in("shop", "shop", "owner-password").await;
    let owner = tokens["access_token"].as_str().unwrap();
    let (status, _) = one
        .post(
            "/api/v4/users",
            Some(owner),
            json!([
                {"name": "ann", "password": "ann-password"},
                {"name": "anybody", "password": "any-password", "default_user": true},
            ]),
        )
        .await;
    assert_eq!(status, StatusCode::CREATED);
    let stranger = || async {
        let path = "/api/v4/sql/database/shop";
        two.post(path, None, json!({"q": "select current_user as me"}))
            .await
    };
    eventually("strangers run as the default user", || async {
        stranger().await.1["data"][0]["me"] == "shop/anybody"
    })
    .await;
    let ann = two.sign_in("shop", "ann", "ann-password").await;
    let ann = ann["access_token"].as_str().unwrap();
    assert_eq!(two.status(ann).await, StatusCode::OK);
    let started = std::time::Instant::now();
    let url = format!("{}/api/v4/users/ann,anybody", one.url);
    let dropped = one
        .client
        .delete(url)
        .bearer_auth(owner)
        .send()
        .await
        .unwrap();
    assert_eq!(dropped.status(), StatusCode::NO_CONTENT);
    assert_eq!(
        one.status(ann).await,
        StatusCode::UNAUTHORIZED,
        "here at once"
    );
    eventually("the other node knows", || async {
        two.status(ann).await == StatusCode::UNAUTHORIZED
            && stranger().await.0 == StatusCode::NOT_FOUND
    })
    .await;
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    one.stop();
    two.stop();
}
