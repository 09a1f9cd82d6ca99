//! Tests that the crate `oauth2`, unmodified, completes every flow that Tidegate also supports.

use std::time::Duration;

use oauth2::basic::{BasicClient, BasicErrorResponseType};
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken,
    DeviceAuthorizationUrl, IntrospectionUrl, PkceCodeChallenge, RedirectUrl, RequestTokenError,
    ResourceOwnerPassword, ResourceOwnerUsername, RevocationUrl, Scope,
    StandardDeviceAuthorizationResponse, StandardRevocableToken, TokenIntrospectionResponse as _,
    TokenResponse as _, TokenUrl,
};

use crate::pages::{Browser, CALLBACK};
use crate::service::demo;

/// A client with all endpoints in the metadata.
macro_rules! client {
    ($id:expr) => {
        BasicClient::new(ClientId::new($id.to_owned()))
            .set_auth_uri(AuthUrl::new(url("/auth")).unwrap())
            .set_token_uri(TokenUrl::new(url("/api/v4/oauth")).unwrap())
            .set_device_authorization_url(
                DeviceAuthorizationUrl::new(url("/api/v4/oauth/device")).unwrap(),
            )
            .set_introspection_url(IntrospectionUrl::new(url("/api/v4/oauth/introspect")).unwrap())
            .set_revocation_url(RevocationUrl::new(url("/api/v4/oauth/revoke")).unwrap())
            .set_redirect_uri(RedirectUrl::new(CALLBACK.to_owned()).unwrap())
    };
}

fn url(path: &str) -> String {
    format!("{}{path}", demo().url)
}

fn path_of(url: &str) -> &str {
    url.strip_prefix(&demo().url).unwrap()
}

/// Signs alice in and gives consent.
async fn allow(address: &str) -> crate::pages::Page {
    let mut browser = Browser::new(demo());
    let page = browser.get(address).await;
    let consent = browser.sign_in(&page, "alice").await;
    // Consent to a confidential client is remembered.
    if consent.status == 303 {
        return consent;
    }
    browser
        .submit(&consent, "decide", &[("decision", "allow")])
        .await
}

#[tokio::test]
async fn the_crate_oauth2_gets_refreshes_and_introspects_tokens_by_code() {
    for auth_type in [AuthType::BasicAuth, AuthType::RequestBody] {
        let secret = ClientSecret::new("demo-server-secret".to_owned());
        let client = client!("demo-server")
            .set_client_secret(secret)
            .set_auth_type(auth_type);
        let http = &demo().client;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (address, state) = client
            .authorize_url(CsrfToken::new_random)
            .add_scope(Scope::new("sql".to_owned()))
            .set_pkce_challenge(challenge)
            .url();
        let landed = allow(path_of(address.as_str())).await;
        assert_eq!(landed.parameter("state"), *state.secret());
        let code = AuthorizationCode::new(landed.parameter("code"));
        let redeemed = client.exchange_code(code).set_pkce_verifier(verifier);
        let tokens = redeemed.request_async(http).await.unwrap();
        assert_eq!(tokens.expires_in(), Some(Duration::from_hours(1)));
        let refresh = tokens.refresh_token().unwrap();
        let next = client.exchange_refresh_token(refresh);
        let next = next.request_async(http).await.unwrap();
        let reported = client
            .introspect(next.access_token())
            .request_async(http)
            .await
            .unwrap();
        assert!(reported.active());
        assert_eq!(reported.username(), Some("alice"));
    }
}

#[tokio::test]
async fn the_crate_oauth2_waits_for_a_device_and_signs_in_by_password() {
    let client = client!("demo-app").set_auth_type(AuthType::RequestBody);
    let http = &demo().client;
    let device: StandardDeviceAuthorizationResponse = client
        .exchange_device_code()
        .request_async(http)
        .await
        .unwrap();
    let complete = device.verification_uri_complete().unwrap().secret();
    let mut browser = Browser::new(demo());
    let page = browser.get(path_of(complete)).await;
    let typed = device.user_code().secret().as_str();
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let page = browser.sign_in(&page, "alice").await;
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let polled = client.exchange_device_access_token(&device);
    let tokens = polled
        .request_async(http, tokio::time::sleep, None)
        .await
        .unwrap();
    assert!(tokens.refresh_token().is_some());

    let (name, password) = (
        ResourceOwnerUsername::new("alice".to_owned()),
        ResourceOwnerPassword::new("alice1234".to_owned()),
    );
    let asked = client.exchange_password(&name, &password);
    let asked = asked.add_extra_param("database", "demo");
    let tokens = asked.request_async(http).await.unwrap();
    let wrong = client.exchange_code(AuthorizationCode::new("nonsense".to_owned()));
    let (_, verifier) = PkceCodeChallenge::new_random_sha256();
    let refused = wrong.set_pkce_verifier(verifier).request_async(http).await;
    let Err(RequestTokenError::ServerResponse(reported)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(*reported.error(), BasicErrorResponseType::InvalidGrant);
    let refresh = StandardRevocableToken::RefreshToken(tokens.refresh_token().unwrap().clone());
    // The crate refuses to send the token over plain HTTP, as it should.
    assert!(client.revoke_token(refresh).is_err());
}
