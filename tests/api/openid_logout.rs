//! Sign-out at the request of a client (OpenID Connect RP-Initiated Logout 1.0), and requests that
//! clients post.

use reqwest::Method;
use serde_json::json;

use crate::flows::client;
use crate::openid::{id_claims, redeemed};
use crate::pages::{Browser, CALLBACK, Page, VERIFIER, authorization, encoded};
use crate::service::{TextResponse, demo};

/// A browser in which a user is signed in, and the user's ID token.
async fn signed_in(client_id: &str, user: &str) -> (Browser<'static>, String) {
    let mut browser = Browser::new(demo());
    let page = browser
        .get(&format!("{}&scope=openid", authorization(client_id)))
        .await;
    let page = browser.sign_in(&page, user).await;
    let response = redeemed(client_id, &page).await;
    let token = response["id_token"].as_str().unwrap().to_owned();
    (browser, token)
}

async fn is_signed_in(browser: &mut Browser<'_>) -> bool {
    let page = browser.get("/account").await;
    assert_eq!(page.status, 200);
    !page.text.contains("value=\"sign_in\"")
}

fn asks(page: &Page) -> bool {
    page.status == 200 && page.text.contains("Sign out?")
}

#[tokio::test]
async fn an_id_token_of_the_user_signs_out_without_a_question() {
    client("leaver", json!({"public": true, "confirm": false})).await;
    let (mut browser, token) = signed_in("leaver", "alice").await;
    let path = format!(
        "/signout?id_token_hint={token}&post_logout_redirect_uri={}&state=a%20b%26c",
        encoded(CALLBACK)
    );
    let page = browser.get(&path).await;
    let expected = format!("{CALLBACK}?state=a%20b%26c");
    assert_eq!(
        (page.status, &page.location),
        (303, &expected),
        "{}",
        page.text
    );
    assert!(!is_signed_in(&mut browser).await);
    // A browser that is signed out already is redirected too.
    let page = browser.get(&path).await;
    assert_eq!((page.status, &page.location), (303, &expected));

    let (mut browser, token) = signed_in("leaver", "alice").await;
    let page = browser
        .get(&format!("/signout?id_token_hint={token}"))
        .await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("You are signed out"), "{}", page.text);
    assert!(!is_signed_in(&mut browser).await);
}

#[tokio::test]
async fn without_an_id_token_of_the_user_a_question_is_asked() {
    client("asker", json!({"public": true, "confirm": false})).await;
    let (mut browser, _) = signed_in("asker", "alice").await;
    let (_, foreign) = signed_in("asker", "demo").await;
    let back = format!("post_logout_redirect_uri={}", encoded(CALLBACK));
    for query in [
        String::new(),
        "?id_token_hint=nonsense".to_owned(),
        format!("?id_token_hint={foreign}&{back}"),
        format!("?client_id=asker&{back}&state=1"),
    ] {
        let page = browser.get(&format!("/signout{query}")).await;
        assert!(asks(&page), "{query}: {} {}", page.location, page.text);
        assert!(is_signed_in(&mut browser).await, "{query}");
    }
    let page = browser
        .get(&format!("/signout?client_id=asker&{back}&state=1"))
        .await;
    let page = browser.submit(&page, "sign_out", &[]).await;
    assert_eq!(page.location, format!("{CALLBACK}?state=1"));
    assert!(!is_signed_in(&mut browser).await);
}

#[tokio::test]
async fn the_browser_goes_to_addresses_of_the_client_only() {
    client("strict", json!({"public": true, "confirm": false})).await;
    let elsewhere = json!({"redirect_uri": ["https://other.example/"], "public": true});
    client("other-strict", elsewhere).await;
    let (mut browser, token) = signed_in("strict", "alice").await;
    let other = encoded("https://other.example/");
    let back = encoded(CALLBACK);
    for query in [
        format!("id_token_hint={token}&post_logout_redirect_uri={other}"),
        format!("client_id=strict&post_logout_redirect_uri={other}"),
        format!("id_token_hint={token}&client_id=other-strict&post_logout_redirect_uri={other}"),
        format!(
            "id_token_hint={token}&post_logout_redirect_uri={back}&post_logout_redirect_uri={back}"
        ),
    ] {
        let page = browser.get(&format!("/signout?{query}")).await;
        assert_eq!((page.status, &*page.location), (400, ""), "{query}");
        assert!(is_signed_in(&mut browser).await, "{query}");
    }
    // If the client is unknown, the browser is not redirected.
    for query in [
        format!("post_logout_redirect_uri={back}"),
        format!("client_id=nobody&post_logout_redirect_uri={back}"),
    ] {
        let page = browser.get(&format!("/signout?{query}")).await;
        let page = browser.submit(&page, "sign_out", &[]).await;
        assert_eq!((page.status, &*page.location), (200, ""), "{query}");
        let start = format!("{}&scope=openid", authorization("strict"));
        let page = browser.get(&start).await;
        browser.sign_in(&page, "alice").await;
    }
}

#[tokio::test]
async fn a_client_may_post_its_requests() {
    client("poster", json!({"public": true, "confirm": false})).await;
    let (mut browser, token) = signed_in("poster", "alice").await;
    let post = async |path: &str, form: &[(&str, &str)]| {
        TextResponse::of(demo().request(Method::POST, path).form(form)).await
    };
    let request = authorization("poster");
    let (_, query) = request.split_once('?').unwrap();
    let challenge = query.split("code_challenge=").nth(1).unwrap();
    let challenge = challenge.split('&').next().unwrap();
    let form = [
        ("response_type", "code"),
        ("client_id", "poster"),
        ("redirect_uri", CALLBACK),
        ("scope", "openid"),
        ("state", "a&b"),
        ("nonce", "posted"),
        ("code_challenge", challenge),
        ("code_challenge_method", "S256"),
    ];
    let sent = post("/auth", &form).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    let page = browser.get(sent.header("location")).await;
    assert_eq!(page.parameter("state"), "a%26b");
    let claims = id_claims(&redeemed("poster", &page).await).await;
    assert_eq!(claims["nonce"], "posted");
    let twice: Vec<_> = form.iter().copied().chain([("scope", "read")]).collect();
    assert_eq!(post("/auth", &twice).await.status, 400);

    let form = [
        ("id_token_hint", &*token),
        ("post_logout_redirect_uri", CALLBACK),
    ];
    let sent = post("/signout", &form).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    assert!(
        is_signed_in(&mut browser).await,
        "the POST itself does nothing"
    );
    let page = browser.get(sent.header("location")).await;
    assert_eq!(page.location, CALLBACK);
    assert!(!is_signed_in(&mut browser).await);

    // The forms of the pages still need their form token.
    for (path, form) in [
        ("/signout", vec![("step", "sign_out")]),
        (
            &*request,
            vec![
                ("step", "sign_in"),
                ("username", "alice"),
                ("password", VERIFIER),
            ],
        ),
    ] {
        assert_eq!(post(path, &form).await.status, 403, "{path}");
    }
}
