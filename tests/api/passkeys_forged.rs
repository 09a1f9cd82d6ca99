//! Forged responses of passkeys: by another person, another site, or a repeated request.

use reqwest::Method;
use serde_json::{Value, json};

use crate::pages::{Browser, Page};
use crate::passkey_authenticator::{Authenticator, FIRST, UP, UV};
use crate::passkeys::{SITE, Shop, answered, assert_refused, question};

/// Forgeries of alice's answer. Each is refused for one reason.
const FORGERIES: &[&str] = &[
    "another site",
    "a subdomain",
    "another port",
    "the name of another site",
    "a frame of another site",
    "a person who was not verified",
    "a person who was not there",
    "a signature of nothing",
    "the key of another person",
    "the user of another person",
    "an unknown passkey",
    "an old counter",
    "another challenge",
    "the answer to a registration",
    "no answer",
    "garbage that is signed",
];

/// The answer to the page's question, wrong in one way. `other` has a passkey of another user.
fn forged(why: &str, page: &Page, (alice, other): (&Authenticator, &Authenticator)) -> Value {
    let (mut question, mut device) = (question(page), alice.clone());
    match why {
        "another site" => device.origin = "http://evil.localhost".into(),
        "a subdomain" => device.origin = "http://evil.api.localhost".into(),
        "another port" => device.origin = format!("{SITE}:8080"),
        "a frame of another site" => device.cross_origin = true,
        "the name of another site" => question["rpId"] = "evil.localhost".into(),
        "another challenge" => question["challenge"] = "AAAA".into(),
        "an old counter" => device.counter = FIRST,
        _ => {}
    }
    let flags = match why {
        "a person who was not verified" => UP,
        "a person who was not there" => UV,
        _ => UP | UV,
    };
    let mut response = device.get(&question, flags);
    let others = other.clone().get(&question, flags);
    match why {
        "a signature of nothing" => response["response"]["signature"] = "MEUCIQ".into(),
        "the key of another person" => response["response"] = others["response"].clone(),
        "the user of another person" => {
            response["response"]["userHandle"] = others["response"]["userHandle"].clone();
        }
        "an unknown passkey" => response["rawId"] = "AAAA".into(),
        "the answer to a registration" => {
            response = device.create(&question_of_alice(alice, &question), flags);
        }
        "no answer" => response = "no credential".into(),
        "garbage that is signed" => {
            response["response"]["authenticatorData"] = "c2VjcmV0LWdhcmJhZ2U".into();
        }
        _ => {}
    }
    response
}

/// The same challenge as a question for a new passkey.
fn question_of_alice(alice: &Authenticator, question: &Value) -> Value {
    json!({
        "challenge": question["challenge"], "rp": {"id": question["rpId"]},
        "user": {"id": alice.user},
    })
}

async fn no_user_is_signed_in(browser: &mut Browser<'_>, why: &str) {
    let page = browser.get("/account").await;
    assert!(!page.text.contains("Your account"), "{why}: {}", page.text);
}

#[tokio::test]
async fn a_forged_response_is_refused() {
    let shop = Shop::open().await;
    shop.user("alice", json!({})).await;
    shop.user("mallory", json!({})).await;
    let mut alice = shop.registered("alice").await;
    let mut mallory = shop.registered("mallory").await;
    // Her counter is ahead of that of the copy which a thief has made.
    for device in [&mut alice, &mut mallory] {
        let mut browser = shop.browser();
        let page = browser.get("/account").await;
        let response = device.get(&question(&page), UP | UV);
        let page = answered(&mut browser, &page, &response).await;
        assert!(page.text.contains("Your account"), "{}", page.text);
    }
    let mut accepted = Vec::new();
    for why in FORGERIES {
        let mut browser = shop.browser();
        let page = browser.get("/account").await;
        // So that one that is accepted does not make the next ones old.
        alice.counter += 1;
        let response = forged(why, &page, (&alice, &mallory));
        let page = answered(&mut browser, &page, &response).await;
        if page.status == 200 {
            accepted.push(why);
            continue;
        }
        assert_refused(&page, why);
        no_user_is_signed_in(&mut browser, why).await;
    }
    assert!(accepted.is_empty(), "{accepted:?}");
    // The owner sees what failed, if the answer named a user.
    let audit = "/api/v4/audit?limit=1000";
    let audit = shop.owner(Method::GET, audit, Value::Null).await;
    let audit: Value = serde_json::from_str(&audit).unwrap();
    let count = |detail: &str| {
        let events = audit["events"].as_array().unwrap().iter();
        events
            .filter(|it| it["event"] == "sign_in_failed" && it["detail"] == detail)
            .count()
    };
    assert_eq!(count("passkey, perhaps a copy"), 1);
    assert_eq!(count("passkey"), FORGERIES.len() - 4);
    let log = shop.node.stop();
    for told in ["webauthn", "garbage", "c2VjcmV0", &alice.id(), &alice.user] {
        assert!(!log.contains(told), "{told}: {log}");
    }
}

#[tokio::test]
async fn a_question_is_answered_once_in_its_own_browser() {
    let shop = Shop::open().await;
    // The counter of another one would give a replayed answer away.
    let mut device = Authenticator::without_counter(SITE);
    shop.register("shop", &mut device).await;
    let (mut first, mut second) = (shop.browser(), shop.browser());
    let page = first.get("/account").await;
    let other = second.get("/account").await;
    let response = device.get(&question(&page), UP | UV);
    assert_refused(
        &answered(&mut second, &other, &response).await,
        "an answer to the question of another browser",
    );
    let sealed = hidden(&page, "sealed");
    let text = response.to_string();
    let stolen = [("credential", &*text), ("sealed", &*sealed)];
    let page_of_second = second.get("/account").await;
    let crossed = second.submit(&page_of_second, "passkey", &stolen).await;
    assert_refused(&crossed, "with the question of that browser");
    let mut copy = first.clone();
    let opened = answered(&mut first, &page, &response).await;
    assert!(opened.text.contains("Your account"), "{}", opened.text);
    let again = answered(&mut copy, &page, &response).await;
    assert_refused(&again, "it is answered");
    no_user_is_signed_in(&mut copy, "replayed").await;
}

fn hidden(page: &Page, name: &str) -> String {
    let mark = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.text.split_once(&mark).unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_address_that_guesses_waits() {
    let shop = Shop::open().await;
    let mut device = shop.registered("shop").await;
    let mut browser = shop.browser();
    let mut page = browser.get("/account").await;
    for attempt in 1.. {
        let response = device.get(&question(&page), UP);
        page = answered(&mut browser, &page, &response).await;
        if page.status == 429 {
            assert_eq!(attempt, 31);
            break;
        }
        assert_refused(&page, "the person is not verified");
    }
    let response = device.get(&question(&page), UP | UV);
    let page = answered(&mut browser, &page, &response).await;
    assert_eq!(page.status, 429, "{}", page.text);
    no_user_is_signed_in(&mut browser, "the address waits").await;
}

#[tokio::test]
async fn a_forged_registration_adds_nothing() {
    let shop = Shop::open().await;
    shop.user("alice", json!({})).await;
    let mut browser = shop.signed_in("shop").await;
    for why in [
        "another site",
        "the name of another site",
        "a frame of another site",
        "a person who was not verified",
        "another challenge",
        "the question of another person",
        "no answer",
    ] {
        let page = browser.get("/account").await;
        let page = browser.submit(&page, "begin_passkey", &[]).await;
        let (mut question, mut device) = (question(&page), Authenticator::new(SITE));
        match why {
            "another site" => device.origin = "http://evil.localhost".into(),
            "a frame of another site" => device.cross_origin = true,
            "the name of another site" => question["rp"]["id"] = "evil.localhost".into(),
            "another challenge" => question["challenge"] = "AAAA".into(),
            _ => {}
        }
        let verified = why != "a person who was not verified";
        let flags = if verified { UP | UV } else { UP };
        let mut response = device.create(&question, flags);
        if why == "no answer" {
            response = json!({"type": "public-key"});
        }
        let mut sealed = hidden(&page, "sealed");
        if why == "the question of another person" {
            let mut alice = shop.signed_in("alice").await;
            let page = alice.get("/account").await;
            let page = alice.submit(&page, "begin_passkey", &[]).await;
            sealed = hidden(&page, "sealed");
            response = device.create(&crate::passkeys::question(&page), flags);
        }
        let response = response.to_string();
        let fields = [("credential", &*response), ("sealed", &*sealed)];
        let refused = browser.submit(&page, "add_passkey", &fields).await;
        assert_refused(&refused, why);
        assert!(!refused.text.contains("Another name"), "{why}");
    }
}
