//! Tests of `/console/sign-in`: a link that signs a browser on this machine in once.

use std::net::IpAddr;
use std::time::Duration;

use http::Method;
use tidegate_identity::UserKey;

use crate::fixture::{Api, TestResponse, request};
use crate::pages::Browser;

const QUARTER: Duration = Duration::from_mins(15);

async fn link(api: &Api) -> String {
    let identity = api.issuer.identity();
    let token = identity
        .sign_in_link(&UserKey::owner("demo"), QUARTER)
        .await;
    format!("/console/sign-in?token={}", token.unwrap().expose())
}

fn assert_refused(response: &TestResponse) {
    assert_eq!(response.status, 400, "{}", response.text());
    let heading = "<h1>This link does not work</h1>";
    assert!(response.text().contains(heading), "{}", response.text());
}

#[tokio::test]
async fn it_signs_the_owner_in_and_leads_to_the_console() {
    let api = Api::start().await;
    let mut browser = Browser::default();
    let response = browser.get(&api, &link(&api).await).await;
    assert_eq!(response.status, 303, "{}", response.text());
    assert_eq!(response.header("location"), "/?signin=demo");
    assert_eq!(response.header("referrer-policy"), "no-referrer");
    let account = browser.get(&api, "/account").await;
    assert!(account.text().contains("demo"), "{}", account.text());
    assert!(!account.text().contains("value=\"sign_in\""));
}

#[tokio::test]
async fn it_works_once() {
    let api = Api::start().await;
    let link = link(&api).await;
    let head = request(Method::HEAD, &link).body(String::new()).unwrap();
    assert_eq!(api.call(head).await.status, 303, "looking does not use it");
    assert_eq!(api.get(&link).await.status, 303);
    assert_refused(&api.get(&link).await);
}

#[tokio::test]
async fn a_browser_that_it_signed_in_may_open_it_again() {
    let api = Api::start().await;
    let link = link(&api).await;
    let mut browser = Browser::default();
    browser.get(&api, &link).await;
    let response = browser.get(&api, &link).await;
    assert_eq!(response.status, 303, "{}", response.text());
    assert_eq!(response.header("location"), "/?signin=demo");
}

#[tokio::test]
async fn it_expires() {
    let api = Api::start().await;
    let link = link(&api).await;
    api.clock.advance(QUARTER);
    assert_refused(&api.get(&link).await);
}

#[tokio::test]
async fn it_works_on_this_machine_only_and_is_not_used_up_by_others() {
    let mut api = Api::with(|builder| builder.insecure_http(true)).await;
    let link = link(&api).await;
    let here = api.peer;
    api.peer.address = IpAddr::from([192, 0, 2, 7]);
    api.peer.loopback = false;
    assert_refused(&api.get(&link).await);
    let forged = request(Method::GET, &link).header("x-forwarded-for", "127.0.0.1");
    assert_refused(&api.call(forged.body(String::new()).unwrap()).await);
    api.peer = here;
    assert_eq!(api.get(&link).await.status, 303);
}

#[tokio::test]
async fn other_texts_are_no_links() {
    let api = Api::start().await;
    for query in [
        "",
        "?token=",
        "?token=x",
        "?token=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
        assert_refused(&api.get(&format!("/console/sign-in{query}")).await);
    }
}
