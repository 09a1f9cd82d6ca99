//! Authorization requests of OpenID Connect: `prompt`, `max_age` and hints (Core 1.0, section
//! 3.1.2).

use serde_json::{Value, json};

use crate::flows::client;
use crate::openid::{id_claims, redeemed};
use crate::pages::{Browser, Page, authorization, encoded};
use crate::service::demo;

/// The path of an authorization request for `openid` with these parameters.
fn start(client_id: &str, more: &str) -> String {
    format!("{}&scope=openid&{more}", authorization(client_id))
}

/// A browser in which alice is signed in, and its tokens.
async fn signed_in(client_id: &str) -> (Browser<'static>, Value) {
    let mut browser = Browser::new(demo());
    let page = browser.get(&start(client_id, "")).await;
    let page = browser.sign_in(&page, "alice").await;
    let response = redeemed(client_id, &page).await;
    (browser, response)
}

fn asks_for_password(page: &Page) -> bool {
    page.status == 200 && page.text.contains("name=\"password\"")
}

#[tokio::test]
async fn a_request_without_pages_gets_a_code_or_an_error() {
    client("silent", json!({"public": true, "confirm": false})).await;
    let mut stranger = Browser::new(demo());
    let page = stranger.get(&start("silent", "prompt=none")).await;
    assert_eq!(
        (page.status, page.parameter("error")),
        (303, "login_required".into())
    );
    assert_eq!(page.parameter("state"), "xyz");
    assert!(!page.parameter("iss").is_empty());

    let (mut browser, first) = signed_in("silent").await;
    let page = browser.get(&start("silent", "prompt=none&nonce=two")).await;
    let second = redeemed("silent", &page).await;
    let (first, second) = (id_claims(&first).await, id_claims(&second).await);
    assert_eq!(second["nonce"], "two");
    assert_eq!(second["sub"], first["sub"]);
    assert_eq!(
        second["auth_time"], first["auth_time"],
        "nobody signed in again"
    );
}

#[tokio::test]
async fn a_request_without_pages_needs_consent_and_second_factor_beforehand() {
    client("silent-consent", json!({})).await;
    client(
        "silent-factor",
        json!({"public": true, "confirm": false, "two_factor": true}),
    )
    .await;
    client("silent-door", json!({"public": true, "confirm": false})).await;
    let (mut browser, _) = signed_in("silent-door").await;
    let page = browser.get(&start("silent-consent", "prompt=none")).await;
    assert_eq!(page.parameter("error"), "consent_required");
    let page = browser.get(&start("silent-factor", "prompt=none")).await;
    assert_eq!(page.parameter("error"), "interaction_required");
    // Once given, consent is remembered.
    let page = browser.get(&start("silent-consent", "")).await;
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let page = browser.get(&start("silent-consent", "prompt=none")).await;
    assert!(!page.parameter("code").is_empty(), "{}", page.location);
}

#[tokio::test]
async fn a_login_prompt_asks_for_the_password_once_more() {
    client("again", json!({"public": true, "confirm": false})).await;
    let (mut browser, _) = signed_in("again").await;
    for more in ["prompt=login", "max_age=0", "prompt=login&max_age=3600"] {
        let page = browser.get(&start("again", more)).await;
        assert!(asks_for_password(&page), "{more}: {}", page.location);
        assert!(
            page.text.contains("value=\"alice\""),
            "{more}: {}",
            page.text
        );
        let wrong = [("username", "alice"), ("password", "wrong-password")];
        let refused = browser.submit(&page, "sign_in", &wrong).await;
        assert!(
            asks_for_password(&refused) || refused.status == 400,
            "{more}"
        );
        let page = browser.sign_in(&page, "alice").await;
        assert!(!page.parameter("code").is_empty(), "{more}: {}", page.text);
    }
    // A form of another step does not replace the password.
    let consent = browser.get(&start("again", "prompt=consent")).await;
    let around = Page {
        text: consent.text.replace("prompt=consent", "prompt=login"),
        ..consent
    };
    let page = browser
        .submit(&around, "decide", &[("decision", "allow")])
        .await;
    assert!(asks_for_password(&page), "{}", page.location);
    // A sign-in that is recent enough is used.
    let page = browser.get(&start("again", "max_age=3600")).await;
    assert!(!page.parameter("code").is_empty(), "{}", page.text);
}

#[tokio::test]
async fn a_sign_in_for_max_age_is_a_new_one() {
    client("aged", json!({"public": true, "confirm": false})).await;
    let (mut browser, first) = signed_in("aged").await;
    let first = id_claims(&first).await["auth_time"].as_i64().unwrap();
    let one_second = std::time::Duration::from_secs(1);
    let begun = std::time::Instant::now();
    // `auth_time` has seconds, so the sign-in is repeated until one falls into a later second.
    let later = loop {
        let page = browser.get(&start("aged", "max_age=0")).await;
        let page = browser.sign_in(&page, "alice").await;
        let claims = id_claims(&redeemed("aged", &page).await).await;
        let time = claims["auth_time"].as_i64().unwrap();
        if time > first || begun.elapsed() > 20 * one_second {
            break time;
        }
    };
    assert!(later > first, "{later} {first}");
    let page = browser.get(&start("aged", "prompt=none&max_age=0")).await;
    assert_eq!(page.parameter("error"), "login_required");
}

#[tokio::test]
async fn a_consent_prompt_asks_though_consent_was_given() {
    client("consent-again", json!({"public": true, "confirm": false})).await;
    let mut browser = Browser::new(demo());
    let page = browser
        .get(&start("consent-again", "prompt=login%20consent"))
        .await;
    let page = browser.sign_in(&page, "alice").await;
    assert!(page.text.contains("name=\"decision\""), "{}", page.text);
    let page = browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    assert!(!page.parameter("code").is_empty(), "{}", page.text);
    let page = browser.get(&start("consent-again", "prompt=consent")).await;
    let page = browser
        .submit(&page, "decide", &[("decision", "deny")])
        .await;
    assert_eq!(page.parameter("error"), "access_denied");
}

#[tokio::test]
async fn an_account_can_be_chosen() {
    client("chooser", json!({"public": true, "confirm": false})).await;
    let (mut browser, _) = signed_in("chooser").await;
    let page = browser
        .get(&start("chooser", "prompt=select_account&nonce=x"))
        .await;
    assert!(page.text.contains("Continue as alice"), "{}", page.text);
    let same = browser.submit(&page, "continue", &[]).await;
    let claims = id_claims(&redeemed("chooser", &same).await).await;
    assert_eq!(
        (&claims["sub"], &claims["nonce"]),
        (&json!("demo/alice"), &json!("x"))
    );
    let page = browser.submit(&page, "switch", &[]).await;
    assert!(asks_for_password(&page), "{}", page.text);
    let page = browser.sign_in(&page, "demo").await;
    let claims = id_claims(&redeemed("chooser", &page).await).await;
    assert_eq!(claims["sub"], "demo");
}

#[tokio::test]
async fn hints_name_the_user_who_is_expected() {
    client("hints", json!({"public": true, "confirm": false})).await;
    let mut stranger = Browser::new(demo());
    let page = stranger.get(&start("hints", "login_hint=al%22ice")).await;
    assert!(page.text.contains("value=\"al&quot;ice\""), "{}", page.text);

    let (mut browser, response) = signed_in("hints").await;
    let hint = encoded(response["id_token"].as_str().unwrap());
    let silent = start("hints", &format!("prompt=none&id_token_hint={hint}"));
    let page = browser.get(&silent).await;
    assert!(!page.parameter("code").is_empty(), "{}", page.location);
    // If another user is signed in, there is no code without a page, and a page asks for a sign-in.
    let mut other = Browser::new(demo());
    let page = other.get(&start("hints", "")).await;
    other.sign_in(&page, "demo").await;
    assert_eq!(
        other.get(&silent).await.parameter("error"),
        "login_required"
    );
    let shown = start("hints", &format!("id_token_hint={hint}"));
    let page = other.get(&shown).await;
    assert!(asks_for_password(&page), "{}", page.location);
    let page = other.sign_in(&page, "alice").await;
    let claims = id_claims(&redeemed("hints", &page).await).await;
    assert_eq!(claims["sub"], "demo/alice");
    // A hint of another issuer, and an access token, are no hints.
    for unknown in ["nonsense", response["access_token"].as_str().unwrap()] {
        let more = format!("prompt=none&id_token_hint={unknown}");
        let page = browser.get(&start("hints", &more)).await;
        assert_eq!(page.parameter("error"), "login_required", "{unknown}");
    }
}
