//! Tests the second factor with its pages (API.md, "Pages").

use reqwest::Method;
use serde_json::json;

use crate::flows::{client, failure};
use crate::pages::{Browser, authorization};
use crate::service::demo;

#[tokio::test]
async fn a_client_with_two_factor_asks_for_a_second_one() {
    client(
        "two-factor",
        json!({"public": true, "two_factor": true, "confirm": false}),
    )
    .await;
    let password = json!({
        "grant_type": "password", "client_id": "two-factor", "database": "demo",
        "username": "alice", "password": "alice1234",
    });
    assert_eq!(
        failure(&password).await,
        (400, "unauthorized_client".into())
    );
    let owner = demo().token("demo").await;
    let user = json!({"name": "careful", "password": "careful1234"});
    let request = demo()
        .request(Method::POST, "/api/v4/users")
        .bearer_auth(owner);
    assert_eq!(request.json(&user).send().await.unwrap().status(), 201);
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization("two-factor")).await;
    let page = browser.sign_in(&page, "careful").await;
    assert!(page.text.contains("<svg class=\"qr\""), "{}", page.text);
    let wrong = browser.submit(&page, "enrol", &[("code", "000000")]).await;
    assert_eq!(wrong.status, 400);
    let (_, secret) = page.text.split_once("class=\"secret\">").unwrap();
    let secret = secret.split('<').next().unwrap().replace(' ', "");
    let shown = one_time_code(&secret);
    let page = browser.submit(&wrong, "enrol", &[("code", &shown)]).await;
    let recovery: Vec<_> = page.text.split("<code>").skip(1).collect();
    assert_eq!(recovery.len(), 10);
    let recovery = recovery[0].split('<').next().unwrap();
    let done = browser.get(&authorization("two-factor")).await;
    assert!(!done.parameter("code").is_empty());

    // A browser that was left open cannot turn the second factor off. A wrong code is reported next
    // to its field.
    let page = browser.get("/account").await;
    for wrong in ["", "careful4321", "000000"] {
        let refused = browser
            .submit(&page, "remove_second_factor", &[("proof", wrong)])
            .await;
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(
            refused.text.contains("id=\"proof-error\""),
            "{}",
            refused.text
        );
    }

    let mut second = Browser::new(demo());
    let page = second.get(&authorization("two-factor")).await;
    let page = second.sign_in(&page, "careful").await;
    assert!(
        page.text.contains("autocomplete=\"one-time-code\""),
        "{}",
        page.text
    );
    let replay = second
        .submit(&page, "second_factor", &[("code", &shown)])
        .await;
    assert_eq!(replay.status, 400, "each code is good once");
    let done = second
        .submit(&page, "second_factor", &[("code", recovery)])
        .await;
    assert!(!done.parameter("code").is_empty(), "{}", done.text);

    let page = browser.get("/account").await;
    let off = browser
        .submit(&page, "remove_second_factor", &[("proof", "careful1234")])
        .await;
    assert_eq!(off.status, 200, "{}", off.text);
    assert!(
        off.text.contains("Two-step sign-in is off."),
        "{}",
        off.text
    );
}

/// The code of an authenticator app (RFC 6238).
fn one_time_code(secret: &str) -> String {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let (mut key, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for letter in secret.chars() {
        held = held << 5 | u32::try_from(letters.find(letter).unwrap()).unwrap();
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            key.push(u8::try_from(held >> bits & 0xff).unwrap());
            held &= (1 << bits) - 1;
        }
    }
    let now = std::time::UNIX_EPOCH.elapsed();
    let step = (now.unwrap().as_secs() / 30).to_be_bytes();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key);
    let tag = ring::hmac::sign(&key, &step);
    let at = usize::from(tag.as_ref()[19] & 15);
    let word: [u8; 4] = tag.as_ref()[at..at + 4].try_into().unwrap();
    format!(
        "{:06}",
        (u32::from_be_bytes(word) & 0x7fff_ffff) % 1_000_000
    )
}
