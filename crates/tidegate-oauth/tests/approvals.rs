//! Tests that unredeemed codes and device approvals end with the browser session, the user, the
//! client and the tenant, and when consent is withdrawn.

use tidegate_identity::{
    Browser, NewOwner, NewUser, RequestContext, Secret, TenantName, UserChange, UserKey, UserName,
};
use tidegate_oauth::{Consent, IssuerStore as _, NewClient, Result, Scopes, TokenResponse};

use crate::authorization_codes::{new_code_in, redeem};
use crate::devices::{begin, decide_in, poll};
use crate::fixture::{Fixture, code};

/// What happens to alice, her browser, her client or her tenant.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Nothing,
    Password,
    DefaultUser,
    DefaultUserAndBack,
    NewUserOfThisName,
    SignOut,
    EndedOnTheAccountPage,
    ConsentWithdrawn,
    ConsentToAnotherClientWithdrawn,
    NewClientOfThisId,
    NewTenantOfThisName,
}

impl Ending {
    async fn happen(self, api: &Fixture, browser: &Browser) {
        let alice = UserKey::new("demo", "alice");
        match self {
            Self::Nothing => {}
            Self::Password => {
                let password = Secret::new("alice5678");
                api.directory.set_password(&alice, &password).await.unwrap();
            }
            Self::DefaultUser => be_default_user(api, true).await,
            Self::DefaultUserAndBack => {
                be_default_user(api, true).await;
                be_default_user(api, false).await;
            }
            Self::NewUserOfThisName => {
                api.directory.drop_user(&alice).await.unwrap();
                new_alice(api).await;
            }
            Self::SignOut => {
                let context = RequestContext::default();
                api.issuer
                    .identity()
                    .sign_out(browser, &context)
                    .await
                    .unwrap();
            }
            Self::EndedOnTheAccountPage => {
                let name = browser.session.id.to_base64url();
                let ended = api.issuer.identity().end_own_browser(browser, &name).await;
                ended.unwrap();
            }
            Self::ConsentWithdrawn => withdraw_consent(api, browser, "app").await,
            Self::ConsentToAnotherClientWithdrawn => {
                withdraw_consent(api, browser, "server").await;
            }
            Self::NewClientOfThisId => {
                api.clients.drop_client("demo", "app").await.unwrap();
                new_app(api, "other").await;
            }
            Self::NewTenantOfThisName => {
                api.directory.drop_tenant("demo").await.unwrap();
                let owner = NewOwner {
                    database: TenantName::parse("demo").unwrap(),
                    role: None,
                    password: None,
                };
                api.directory.create_owner(owner).await.unwrap();
                new_alice(api).await;
                new_app(api, "demo").await;
            }
        }
    }
}

/// Gives and withdraws consent. The test gives it here, because the consent to `app` is not stored:
/// it is a public client with a loopback redirect URI.
async fn withdraw_consent(api: &Fixture, browser: &Browser, client_id: &str) {
    let consent = Consent {
        client_id: client_id.to_owned(),
        scopes: Scopes::UNRESTRICTED,
        given_at: api.ports.clock.now(),
    };
    let given = api.store.put_consent(&browser.user.key, &consent).await;
    given.unwrap();
    let context = RequestContext::default();
    let withdrawn = api.issuer.withdraw_consent(browser, client_id, &context);
    withdrawn.await.unwrap();
}

async fn be_default_user(api: &Fixture, default_user: bool) {
    let change = |default_user| UserChange {
        default_user: Some(default_user),
        ..UserChange::default()
    };
    let guest = UserKey::new("demo", "guest");
    if default_user {
        let changed = api.directory.change_user(&guest, change(false)).await;
        changed.unwrap();
    }
    let alice = UserKey::new("demo", "alice");
    let changed = api.directory.change_user(&alice, change(default_user));
    changed.await.unwrap();
}

async fn new_alice(api: &Fixture) {
    let demo = TenantName::parse("demo").unwrap();
    let alice = NewUser {
        password: Some(Secret::new("alice1234")),
        ..NewUser::new(demo, UserName::parse("alice").unwrap())
    };
    api.directory.create_user(alice).await.unwrap();
}

async fn new_app(api: &Fixture, database: &str) {
    let uris = vec!["http://127.0.0.1:5173/callback".to_owned()];
    let app = NewClient {
        id: Some("app".to_owned()),
        public: true,
        ..NewClient::new(TenantName::parse(database).unwrap(), "App", uris)
    };
    api.clients.create_client(app).await.unwrap();
}

fn outcome(result: &Result<TokenResponse>) -> &'static str {
    result
        .as_ref()
        .map_or_else(tidegate_oauth::Error::code, |_| "ok")
}

#[tokio::test]
async fn an_approval_ends_with_the_browser_the_user_the_client_and_the_tenant() {
    for (event, expected) in [
        (Ending::Nothing, "ok"),
        (Ending::Password, "invalid_grant"),
        (Ending::DefaultUser, "invalid_grant"),
        (Ending::DefaultUserAndBack, "invalid_grant"),
        (Ending::NewUserOfThisName, "invalid_grant"),
        (Ending::SignOut, "invalid_grant"),
        (Ending::EndedOnTheAccountPage, "invalid_grant"),
        (Ending::ConsentWithdrawn, "invalid_grant"),
        (Ending::ConsentToAnotherClientWithdrawn, "ok"),
        (Ending::NewClientOfThisId, "invalid_grant"),
        (Ending::NewTenantOfThisName, "invalid_grant"),
    ] {
        let api = Fixture::start().await;
        let browser = api.browser("demo", "alice").await;
        let shown = new_code_in(&api, &browser).await;
        let device = begin(&api, &[("client_id", "app")]).await.unwrap();
        decide_in(&api, &device, true, &browser).await.unwrap();
        event.happen(&api, &browser).await;
        let redeemed = outcome(&redeem(&api, &[], &shown).await);
        assert_eq!(redeemed, expected, "the code after {event:?}");
        let polled = outcome(&poll(&api, &device, "device_code").await);
        assert_eq!(polled, expected, "the device code after {event:?}");
    }
}

#[tokio::test]
async fn an_approval_outlives_another_browser_of_the_user() {
    let api = Fixture::start().await;
    let (one, other) = (
        api.browser("demo", "alice").await,
        api.browser("demo", "alice").await,
    );
    let shown = new_code_in(&api, &one).await;
    let context = RequestContext::default();
    api.issuer
        .identity()
        .sign_out(&other, &context)
        .await
        .unwrap();
    redeem(&api, &[], &shown).await.unwrap();
}

#[tokio::test]
async fn a_second_use_is_seen_after_the_browser_has_signed_out() {
    let api = Fixture::start().await;
    let browser = api.browser("demo", "alice").await;
    let shown = new_code_in(&api, &browser).await;
    let tokens = redeem(&api, &[], &shown).await.unwrap();
    let context = RequestContext::default();
    api.issuer
        .identity()
        .sign_out(&browser, &context)
        .await
        .unwrap();
    api.issuer
        .verify(tokens.access_token.expose())
        .expect("what was redeemed lives on");
    assert_eq!(code(redeem(&api, &[], &shown).await), "invalid_grant");
    let dead = api.issuer.verify(tokens.access_token.expose());
    assert_eq!(code(dead), "invalid_token");
}
