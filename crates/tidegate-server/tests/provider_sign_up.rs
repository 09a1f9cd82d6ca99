//! Tests of sign-up with an identity provider: two callbacks of one person at the same time.

use crate::account_linking::open_client;
use crate::fixture::Api;
use crate::pages::{Browser, QUERY};
use crate::ports::connected;

/// Begins a sign-up at the provider `one`. Returns the path of the callback of `person`.
async fn begin(api: &Api, browser: &mut Browser, person: &str) -> String {
    let query = QUERY.replace("client_id=app", "client_id=open");
    let sent = browser.get(api, &format!("/signin/one?{query}")).await;
    let (_, state) = sent.header("location").split_once("state=").unwrap();
    format!("/signin/one/callback?code={person}&state={state}")
}

/// The name of the signed-in user on the account page.
async fn name(api: &Api, browser: &mut Browser) -> String {
    let page = browser.get(api, "/account").await;
    let (_, name) = page.text().split_once("<strong>").unwrap();
    name.split_once("</strong>").unwrap().0.to_owned()
}

#[tokio::test]
async fn one_person_who_comes_twice_at_once_is_one_user() {
    let (api, _) = connected().await;
    open_client(&api).await;
    let (mut one, mut other) = (Browser::default(), Browser::default());
    let first = begin(&api, &mut one, "nora").await;
    let second = begin(&api, &mut other, "nora").await;
    let (first, second) = tokio::join!(one.get(&api, &first), other.get(&api, &second));
    for back in [first, second] {
        assert_eq!(back.status, 303, "{}", back.text());
    }
    let winner = name(&api, &mut one).await;
    assert_eq!(name(&api, &mut other).await, winner);
    // Two users were created, `nora` and `nora-2`, and one of them was dropped. The next person of
    // this name can have its name.
    let free = if winner == "nora" { "nora-2" } else { "nora" };
    let mut namesake = Browser::default();
    let back = begin(&api, &mut namesake, "nora%40example.com").await;
    let back = namesake.get(&api, &back).await;
    assert_eq!(back.status, 303, "{}", back.text());
    assert_eq!(name(&api, &mut namesake).await, free);
}
