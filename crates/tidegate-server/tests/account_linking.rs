//! Tests of linking accounts on the account page: linking needs a proof, an account belongs to one
//! user only, the user is informed by email, and the last credential cannot be removed.

use std::time::Duration;

use http::Method;
use tidegate_identity::{TenantName, UserChange, UserKey};
use tidegate_oauth::NewClient;

use crate::fixture::{Api, TestResponse, request};
use crate::page_forms::only_from_here;
use crate::pages::{Browser, CALLBACK, QUERY, signed_in};
use crate::ports::connected;

/// Submits the form that links an account of the provider `one`, signs in there as `person`, and
/// returns.
async fn link(api: &Api, browser: &mut Browser, person: &str) -> TestResponse {
    let page = browser.get(api, "/account").await;
    let redirected = browser
        .post(api, (&page, "link"), &[("provider", "one")])
        .await;
    come_back(api, browser, &redirected, person).await
}

async fn come_back(
    api: &Api,
    browser: &mut Browser,
    redirected: &TestResponse,
    person: &str,
) -> TestResponse {
    assert_eq!(redirected.status, 200, "{}", redirected.text());
    let state = state(redirected);
    let back = format!("/signin/one/callback?code={person}&state={state}");
    browser.get(api, &back).await
}

/// The login state in the redirect to a provider that `redirected` contains.
fn state(redirected: &TestResponse) -> String {
    let (_, state) = redirected.text().split_once("/authorize?state=").unwrap();
    state.split('"').next().unwrap().to_owned()
}

/// Signs in at the provider `one` for an OAuth client; returns the last response.
async fn sign_in_at_provider(api: &Api, browser: &mut Browser, person: &str) -> TestResponse {
    let begun = format!("/signin/one?{QUERY}");
    let sent = browser.get(api, &begun).await;
    let (_, state) = sent.header("location").split_once("state=").unwrap();
    let back = format!("/signin/one/callback?code={person}&state={state}");
    browser.get(api, &back).await
}

async fn set_email(api: &Api, name: &str) {
    let change = UserChange {
        email: Some(Some(format!("{name}@example.org"))),
        ..UserChange::default()
    };
    let key = UserKey::new("demo", name);
    api.directory.change_user(&key, change).await.unwrap();
}

async fn audited(api: &Api) -> Vec<String> {
    let token = api.token("demo").await;
    let request = request(Method::GET, "/api/v4/audit?limit=1000")
        .header("authorization", format!("Bearer {token}"));
    let log = api.call(request.body(String::new()).unwrap()).await.json();
    let events = log["events"].as_array().unwrap().iter();
    let reported = events.filter(|event| event["user"] == "alice");
    reported
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .collect()
}

async fn links_and_sees_it(api: &Api, browser: &mut Browser) {
    let done = link(api, browser, "octo").await;
    assert_eq!(
        done.header("location"),
        "/account?done=linked",
        "{}",
        done.text()
    );
    let page = browser.get(api, done.header("location")).await;
    for part in [
        "One ID",
        "octo",
        "linked just now",
        "The account is linked",
        "Link Two ID",
    ] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
}

#[tokio::test]
async fn an_account_is_linked_signs_in_and_is_unlinked() {
    let (api, mailbox) = connected().await;
    set_email(&api, "alice").await;
    let mut stranger = Browser::default();
    let closed = sign_in_at_provider(&api, &mut stranger, "octo").await;
    assert_eq!(closed.status, 403, "not linked yet: {}", closed.text());

    let mut browser = signed_in(&api).await;
    links_and_sees_it(&api, &mut browser).await;
    let message = mailbox.messages(1).await.remove(0);
    assert_eq!(message.to, "alice@example.org");
    assert!(
        message.text.contains("https://one.example can be used"),
        "{}",
        message.text
    );

    // The linked account signs in as the user, without a password.
    let mut other = Browser::default();
    let back = sign_in_at_provider(&api, &mut other, "octo").await;
    assert_eq!(back.header("location"), format!("/auth?{QUERY}"));
    let page = other.get(&api, "/account").await;
    assert!(
        page.text().contains("<strong>alice</strong>"),
        "{}",
        page.text()
    );

    // Linking the same account again changes nothing.
    let again = link(&api, &mut browser, "octo").await;
    assert_eq!(again.header("location"), "/account?done=linked");

    let page = browser.get(&api, "/account").await;
    let which = [("issuer", "https://one.example"), ("subject", "octo")];
    let gone = browser.post(&api, (&page, "unlink"), &which).await;
    assert!(
        gone.text().contains("The account is unlinked."),
        "{}",
        gone.text()
    );
    assert!(!gone.text().contains("octo"), "{}", gone.text());
    let messages = mailbox.messages(2).await;
    assert!(
        messages[1].text.contains("cannot be used"),
        "{}",
        messages[1].text
    );
    let twice = browser.post(&api, (&page, "unlink"), &which).await;
    assert_eq!(twice.status, 200, "{}", twice.text());
    let closed = sign_in_at_provider(&api, &mut stranger, "octo").await;
    assert_eq!(closed.status, 403, "{}", closed.text());
    let events = audited(&api).await;
    let of_links: Vec<_> = events
        .iter()
        .filter(|e| e.starts_with("identity"))
        .collect();
    assert_eq!(of_links, ["identity_linked", "identity_unlinked"]);
    mailbox.messages(2).await;
}

#[tokio::test]
async fn an_account_linked_to_another_user_cannot_be_linked() {
    let (api, _) = connected().await;
    let mut browser = signed_in(&api).await;
    link(&api, &mut browser, "octo").await;
    let mut owner = Browser::default();
    let page = owner.get(&api, "/account").await;
    let fields = [("username", "demo"), ("password", "demo1234")];
    owner.post(&api, (&page, "sign_in"), &fields).await;
    let refused = link(&api, &mut owner, "octo").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    let page = owner.get(&api, "/account").await;
    assert!(page.text().contains("None is linked"), "{}", page.text());
    // A linked account of another user cannot be removed.
    link(&api, &mut owner, "own").await;
    let page = owner.get(&api, "/account").await;
    let which = [("issuer", "https://one.example"), ("subject", "octo")];
    owner.post(&api, (&page, "unlink"), &which).await;
    let page = browser.get(&api, "/account").await;
    assert!(
        page.text().contains("octo"),
        "still linked: {}",
        page.text()
    );
}

#[tokio::test]
async fn a_trip_belongs_to_the_session_that_began_it() {
    let (api, _) = connected().await;
    let mut browser = signed_in(&api).await;
    let page = browser.get(&api, "/account").await;
    let redirected = browser
        .post(&api, (&page, "link"), &[("provider", "one")])
        .await;
    // The callback is refused in another browser of the same user, and in a browser without a user.
    for mut other in [signed_in(&api).await, Browser::default()] {
        let refused = come_back(&api, &mut other, &redirected, "mallory").await;
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    // It is also refused in the same browser after a sign-out, and after the login state has
    // expired.
    let page = browser.get(&api, "/signout").await;
    let kept = Browser {
        cookie: browser.cookie.clone(),
    };
    browser.post(&api, (&page, "sign_out"), &[]).await;
    for mut late in [browser, kept] {
        let refused = come_back(&api, &mut late, &redirected, "mallory").await;
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    let mut slow = signed_in(&api).await;
    let page = slow.get(&api, "/account").await;
    let redirected = slow
        .post(&api, (&page, "link"), &[("provider", "one")])
        .await;
    api.clock.advance(Duration::from_mins(10));
    assert_eq!(
        come_back(&api, &mut slow, &redirected, "mallory")
            .await
            .status,
        400
    );
    let page = slow.get(&api, "/account").await;
    assert!(page.text().contains("None is linked"), "{}", page.text());
}

#[tokio::test]
async fn linking_without_a_recent_sign_in_needs_the_password() {
    let (api, _) = connected().await;
    let mut browser = signed_in(&api).await;
    api.clock.advance(Duration::from_mins(11));
    let page = browser.get(&api, "/account").await;
    let one = ("provider", "one");
    let asked = browser.post(&api, (&page, "link"), &[one]).await;
    assert!(asked.text().contains("Is it you?"), "{}", asked.text());
    assert!(!asked.text().contains("/authorize?"), "{}", asked.text());
    let wrong = [one, ("password", "wrong-password")];
    let refused = browser.post(&api, (&asked, "link"), &wrong).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .text()
            .contains("aria-describedby=\"password-error\"")
    );
    assert!(
        !refused.text().contains("/authorize?"),
        "{}",
        refused.text()
    );
    let right = [one, ("password", "alice1234")];
    let redirected = browser.post(&api, (&refused, "link"), &right).await;
    let refresh = redirected.header("refresh");
    assert!(
        refresh.starts_with("0; url=https://one.example/authorize?"),
        "{refresh}"
    );
    let done = come_back(&api, &mut browser, &redirected, "octo").await;
    assert_eq!(done.header("location"), "/account?done=linked");
}

#[tokio::test]
async fn unlinking_without_a_recent_sign_in_needs_the_password() {
    let (api, _) = connected().await;
    let mut browser = signed_in(&api).await;
    link(&api, &mut browser, "octo").await;
    api.clock.advance(Duration::from_mins(11));
    let page = browser.get(&api, "/account").await;
    let (issuer, octo) = (("issuer", "https://one.example"), ("subject", "octo"));
    let asked = browser.post(&api, (&page, "unlink"), &[issuer, octo]).await;
    assert!(asked.text().contains("Is it you?"), "{}", asked.text());
    for kept in [
        "name=\"issuer\" value=\"https://one.example\"",
        "value=\"octo\"",
    ] {
        assert!(asked.text().contains(kept), "{}", asked.text());
    }
    let wrong = [issuer, octo, ("password", "wrong-password")];
    let refused = browser.post(&api, (&asked, "unlink"), &wrong).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let page = browser.get(&api, "/account").await;
    assert!(page.text().contains("octo"), "{}", page.text());
    let right = [issuer, octo, ("password", "alice1234")];
    let done = browser.post(&api, (&refused, "unlink"), &right).await;
    assert!(
        done.text().contains("The account is unlinked."),
        "{}",
        done.text()
    );
}

/// A client that allows sign-up with an identity provider.
pub(crate) async fn open_client(api: &Api) {
    let open = NewClient {
        id: Some("open".to_owned()),
        public: true,
        confirm: false,
        allow_signup: true,
        social_signup: true,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Open",
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(open).await.unwrap();
}

#[tokio::test]
async fn the_last_credential_cannot_be_unlinked() {
    let (api, mailbox) = connected().await;
    open_client(&api).await;
    let mut browser = Browser::default();
    let begun = format!(
        "/signin/one?{}",
        QUERY.replace("client_id=app", "client_id=open")
    );
    let sent = browser.get(&api, &begun).await;
    let (_, state) = sent.header("location").split_once("state=").unwrap();
    let back = format!("/signin/one/callback?code=nora&state={state}");
    assert_eq!(browser.get(&api, &back).await.status, 303);

    let unlink = async |browser: &mut Browser, subject: &str| {
        let page = browser.get(&api, "/account").await;
        let which = [("issuer", "https://one.example"), ("subject", subject)];
        browser.post(&api, (&page, "unlink"), &which).await
    };
    let refused = unlink(&mut browser, "nora").await;
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert!(
        refused.text().contains("Set a password first"),
        "{}",
        refused.text()
    );
    // If there is a second account, either of them may be removed, but not both.
    link(&api, &mut browser, "second").await;
    mailbox.messages(1).await;
    assert_eq!(unlink(&mut browser, "nora").await.status, 200);
    assert_eq!(unlink(&mut browser, "second").await.status, 409);

    // A user may set a first password only soon after the sign-in.
    let page = browser.get(&api, "/account").await;
    assert!(!page.text().contains("Current password"), "{}", page.text());
    let new = [("new_password", "nora-12345")];
    api.clock.advance(Duration::from_mins(11));
    let late = browser.post(&api, (&page, "change_password"), &new).await;
    assert_eq!(late.status, 400, "{}", late.text());
    assert!(
        late.text().contains("new_password-error"),
        "{}",
        late.text()
    );
    let denied = browser
        .post(&api, (&page, "link"), &[("provider", "two")])
        .await;
    assert_eq!(denied.status, 400, "{}", denied.text());
    assert_eq!(
        sign_in_at_provider(&api, &mut browser, "second")
            .await
            .status,
        303
    );
    let page = browser.get(&api, "/account").await;
    let chosen = browser.post(&api, (&page, "change_password"), &new).await;
    assert_eq!(chosen.status, 200, "{}", chosen.text());
    assert_eq!(unlink(&mut browser, "second").await.status, 200);
}

#[tokio::test]
async fn links_are_changed_from_our_own_page_only() {
    let (api, _) = connected().await;
    let mut browser = signed_in(&api).await;
    link(&api, &mut browser, "octo").await;
    let page = browser.get(&api, "/account").await;
    only_from_here(&api, &browser, (&page, "link"), "&provider=one").await;
    let which = "&issuer=https%3A%2F%2Fone.example&subject=octo";
    only_from_here(&api, &browser, (&page, "unlink"), which).await;
    let page = browser.get(
        &api,
        "/account?step=unlink&issuer=https://one.example&subject=octo",
    );
    assert!(
        page.await.text().contains("octo"),
        "an address alone does nothing"
    );
    // The name of an account comes from the provider, so it is escaped.
    link(&api, &mut browser, "%3Cscript%3E").await;
    let page = browser.get(&api, "/account").await;
    assert!(!page.text().contains("<script"), "{}", page.text());
    assert!(page.text().contains("&lt;script&gt;"), "{}", page.text());
}
