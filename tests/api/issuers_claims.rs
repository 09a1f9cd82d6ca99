//! Tests which claims of a token of an external issuer reach the policies (docs/how-to, "Tokens of
//! another issuer").

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::issuers::{ISSUERS, world};

#[tokio::test]
async fn a_token_with_many_claims_works_with_a_list_of_those_for_policies() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let groups = vec!["00000000-0000-0000-66f3-3332eca7ea81"; 200];
    let large = world.token(json!({"org": "acme", "groups": groups,
        "resource_access": {"shop": {"roles": ["editor"]}, "account": {"roles": vec!["x"; 200]}}}));
    assert!(large.len() > 10_000, "{}", large.len());
    let (status, text) = world.role(&large).await.unwrap_err();
    assert_eq!(status, 401);
    let expected = "the token cannot be used for a group: the claims of a member are longer than \
        4,096 bytes; the setting `claims` of the issuer id lists the claims that policies need";
    assert_eq!(text, expected);

    // The list counts for the same token at once.
    let one = format!("{ISSUERS}/id");
    let claims = json!({"claims": ["org", "resource_access.shop"]});
    let (status, response) = world.rest(Method::PATCH, &one, claims.clone()).await;
    assert_eq!(status, 303, "{response}");
    let (_, shown) = world.rest(Method::GET, &one, json!({})).await;
    assert_eq!(shown["claims"], claims["claims"]);
    assert_eq!(world.titles(&large).await, ["Paint"]);
    let method = json!({"method": "their_claims", "q": "select tidegate.claims() as claims"});
    let (status, response) = world
        .node
        .post("/api/v4/methods", Some(&world.owner), method)
        .await;
    assert_eq!(status, StatusCode::CREATED, "{response}");
    let call = json!({"jsonrpc": "2.0", "method": "their_claims", "id": 1});
    let (_, response) = world.node.post("/api/v4/call", Some(&large), call).await;
    assert_eq!(
        response["result"]["data"][0]["claims"],
        json!({"org": "acme", "resource_access": {"shop": {"roles": ["editor"]}}}),
        "{response}"
    );
    let (status, _) = world
        .rest(Method::PATCH, &one, json!({"claims": null}))
        .await;
    assert_eq!(status, 303);
    assert_eq!(world.role(&large).await.unwrap_err().0, 401);
}

#[tokio::test]
async fn a_claim_with_the_character_nul_is_refused_by_name() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    // A backslash in front of `u0000` makes it a text like any other.
    let text = world.token(json!({"org": "acme", "note": "\\u0000"}));
    assert_eq!(world.titles(&text).await, ["Paint"]);
    let nul = world.token(json!({"org": "acme", "note": {"deep": ["a\0"]}}));
    let (status, text) = world.role(&nul).await.unwrap_err();
    assert!(
        status == 401 && text.contains("without the character NUL") && text.contains("`claims`"),
        "{status} {text}"
    );
    let (status, _) = world
        .rest(
            Method::PATCH,
            &format!("{ISSUERS}/id"),
            json!({"claims": ["org"]}),
        )
        .await;
    assert_eq!(status, 303);
    assert_eq!(world.titles(&nul).await, ["Paint"]);
}

/// A float of 98765432109876543210987 is also the value of the numbers next to it.
#[tokio::test]
async fn a_number_of_more_than_64_bits_is_refused_only_where_it_is_read() {
    let world = world().await;
    world.accept(json!({"default_role": "staff"})).await;
    let large = json!(98_765_432_109_876_543_210_987_f64);
    let (status, text) = world
        .role(&world.token(json!({"sub": large})))
        .await
        .unwrap_err();
    assert!(
        status == 401 && text.contains("claim `sub`"),
        "{status} {text}"
    );
    let token = world.token(json!({"org": "acme", "tenant": {"ids": [1, large]}, "exp": 1e11}));
    let (status, text) = world.role(&token).await.unwrap_err();
    assert!(
        status == 401 && text.contains("`tenant.ids[1]`") && text.contains("setting `claims`"),
        "{status} {text}"
    );
    let listed = json!({"claims": ["org"]});
    let (status, response) = world
        .rest(Method::PATCH, &format!("{ISSUERS}/id"), listed)
        .await;
    assert_eq!(status, 303, "{response}");
    assert_eq!(world.titles(&token).await, ["Paint"]);
}
