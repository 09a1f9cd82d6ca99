//! Tests consent: the page describes it in words, it is remembered by client and scope, and it can
//! be revoked (docs/API.md, "Scopes").

use reqwest::Method;
use serde_json::json;

use crate::audit::all_events;
use crate::flows::client;
use crate::pages::{Browser, CALLBACK, VERIFIER, authorization, encoded};
use crate::scopes::{GRAPHQL, SCOPES, send};
use crate::service::demo;

#[tokio::test]
async fn consent_is_asked_in_words_remembered_by_scope_and_taken_back() {
    let made = client("asks", json!({})).await;
    let secret = made["secret"].as_str().unwrap();
    let mut browser = Browser::new(demo());
    let with = |scope: &str| format!("{}&scope={}", authorization("asks"), encoded(scope));
    let page = browser.get(&with("read methods")).await;
    let consent = browser.sign_in(&page, "alice").await;
    assert!(
        consent
            .text
            .contains("<li>read data that you may read</li><li>call methods</li>"),
        "{}",
        consent.text
    );
    assert!(
        !consent.text.contains("all of your rights"),
        "{}",
        consent.text
    );
    let allowed = browser
        .submit(&consent, "decide", &[("decision", "allow")])
        .await;
    let redeem = |code: String| {
        json!({
            "grant_type": "authorization_code", "client_id": "asks", "client_secret": secret,
            "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
        })
    };
    let body = redeem(allowed.parameter("code"));
    let response = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await
        .body;
    assert_eq!(response["scope"], "read methods", "{response}");
    let token = response["access_token"].as_str().unwrap().to_owned();
    let read = json!({"query": "{__typename}"});
    assert_eq!(send(&token, Method::POST, GRAPHQL, &read).await.status, 200);

    // Consent is asked for again only if a request has more scopes.
    for (scope, asked) in [
        ("read methods", false),
        ("read", false),
        ("read sql", true),
        ("", true),
        ("openid", true),
    ] {
        let page = browser.get(&with(scope)).await;
        assert_eq!(page.status == 200, asked, "{scope}: {}", page.text);
        if asked {
            assert!(
                page.text.contains("name=\"decision\""),
                "{scope}: {}",
                page.text
            );
        } else {
            assert!(
                !page.parameter("code").is_empty(),
                "{scope}: {}",
                page.location
            );
        }
    }
    let page = browser.get(&with("")).await;
    assert!(
        page.text.contains("with all of your rights"),
        "{}",
        page.text
    );

    // After the consent is revoked on the account page, the application loses its access and must
    // ask again.
    let account = browser.get("/account").await;
    assert!(
        account.text.contains("What you allowed"),
        "{}",
        account.text
    );
    let kept = browser.get(&with("read")).await.parameter("code");
    assert!(!kept.is_empty());
    let page = browser.submit(&account, "withdraw_consent", &[]).await;
    assert!(page.text.contains("will ask again"), "{}", page.text);
    let body = redeem(kept);
    let late = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await
        .body;
    assert_eq!(late["error"], "invalid_grant", "{late}");
    assert_eq!(send(&token, Method::POST, GRAPHQL, &read).await.status, 401);
    let page = browser.get(&with("read")).await;
    assert_eq!(page.status, 200, "{}", page.location);
    // The consent of one user does not count for another.
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let mut other = Browser::new(demo());
    let page = other.get(&with("read")).await;
    let page = other.sign_in(&page, "demo").await;
    assert!(page.text.contains("name=\"decision\""), "{}", page.text);
    let events = all_events(demo()).await;
    assert!(events.iter().any(|one| one["event"] == "consent_withdrawn"));
}

#[tokio::test]
async fn each_scope_has_words_of_its_own() {
    client("asks-words", json!({})).await;
    let mut browser = Browser::new(demo());
    let with = |scope: &str| format!("{}&scope={}", authorization("asks-words"), encoded(scope));
    let page = browser.get(&with("read")).await;
    browser.sign_in(&page, "alice").await;
    let mut known = Vec::new();
    for scope in SCOPES.into_iter().chain(["profile", "email"]) {
        let page = browser.get(&with(scope)).await;
        let items: Vec<_> = page.text.split("<li>").skip(1).collect();
        let [item] = &*items else {
            panic!("{scope}: {}", page.text);
        };
        let words = item.split("</li>").next().unwrap().to_owned();
        assert!(!known.contains(&words), "{scope}: {words}");
        known.push(words);
    }
    let page = browser.get(&with(&SCOPES.join(" "))).await;
    for words in &known[..SCOPES.len()] {
        let item = format!("<li>{words}</li>");
        assert!(page.text.contains(&item), "{words}: {}", page.text);
    }
}

#[tokio::test]
async fn a_public_client_on_the_device_of_the_user_is_always_asked_for() {
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization("demo-app")).await;
    let consent = browser.sign_in(&page, "alice").await;
    browser
        .submit(&consent, "decide", &[("decision", "allow")])
        .await;
    let page = browser.get(&authorization("demo-app")).await;
    assert!(page.text.contains("name=\"decision\""), "{}", page.text);
}

#[tokio::test]
async fn a_device_asks_for_its_scopes() {
    let body = json!({"client_id": "demo-app", "scope": "read"});
    let codes = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/device"), &body)
        .await
        .body;
    let typed = codes["user_code"].as_str().unwrap();
    let mut browser = Browser::new(demo());
    let page = browser.get("/device").await;
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let page = browser.sign_in(&page, "alice").await;
    assert!(
        page.text.contains("read data that you may read"),
        "{}",
        page.text
    );
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let body = json!({
        "grant_type": "device_code", "client_id": "demo-app", "device_code": codes["device_code"],
        "scope": "admin",
    });
    let response = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await
        .body;
    assert_eq!(response["scope"], "read", "{response}");
}
