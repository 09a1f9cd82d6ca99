//! Sign-up with an OpenID provider: it needs an email address that the provider has verified, which
//! the claim `email_verified` of the ID token says (OpenID Connect Core 1.0, section 5.1).

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::flows::redemption;
use crate::issuer_fixture::{Document, IssuerServer, Signer};
use crate::issuers::now;
use crate::openid::USER_INFO;
use crate::pages::{Browser, CALLBACK, Page, authorization};
use crate::service::{Service, demo_folder};

/// A demo, and the OpenID provider that it uses.
struct World {
    service: Service,
    provider: IssuerServer,
    signer: Signer,
    _folder: TempDir,
}

impl World {
    /// Starts a provider, and a demo with a client that allows sign-up through it.
    async fn start() -> Self {
        let signer = Signer::new("a");
        let provider = IssuerServer::start(&[&signer]).await;
        let url = &provider.url;
        let discovery = json!({"issuer": url, "authorization_endpoint": format!("{url}/auth"),
            "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/keys")});
        let path = "/.well-known/openid-configuration";
        provider.set(path, Document::Json(discovery));
        let settings = [
            ("TIDEGATE_OPENID_ISSUER", url.as_str()),
            ("TIDEGATE_OPENID_LABEL", "Example"),
            ("TIDEGATE_OPENID_CLIENT_ID", "us"),
            ("TIDEGATE_OPENID_CLIENT_SECRET", "secret"),
            ("TIDEGATE_OPEN_SIGNUP", "true"),
        ];
        let folder = demo_folder();
        let service = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
        let client = json!({
            "id": "social", "name": "Social", "redirect_uri": [CALLBACK], "public": true,
            "confirm": false, "allow_signup": true, "social_signup": true,
            "signup_kind": "member", "signup_group": "people",
        });
        let made = service.rest(Some("demo"), ("POST", "/api/v4/clients"), &client);
        assert_eq!(made.await.status, 201);
        Self {
            service,
            provider,
            signer,
            _folder: folder,
        }
    }

    /// Signs a person in at the provider and returns with its code. The ID token has this
    /// `email_verified`, or none.
    async fn come_back(
        &self,
        browser: &mut Browser<'_>,
        (person, verified): (&str, Option<Value>),
    ) -> Page {
        let sign_in = authorization("social").replace("/auth?", "/signin/openid?");
        let sent = browser.get(&sign_in).await;
        assert_eq!(sent.status, 303, "{}", sent.text);
        let mut claims = json!({"iss": self.provider.url, "aud": "us", "sub": person,
            "iat": now() - 10, "exp": now() + 600, "nonce": sent.parameter("nonce"),
            "email": format!("{person}@example.com"), "preferred_username": person});
        if let Some(verified) = verified {
            claims["email_verified"] = verified;
        }
        let id_token = self.signer.token(&claims);
        let tokens = json!({"access_token": "x", "token_type": "Bearer", "id_token": id_token});
        self.provider.set("/token", Document::Json(tokens));
        let state = sent.parameter("state");
        let back = format!("/signin/openid/callback?code=c&state={state}");
        browser.get(&back).await
    }

    async fn user(&self, name: &str) -> (u16, Value) {
        let path = format!("/api/v4/users/{name}");
        let shown = self
            .service
            .rest(Some("demo"), ("GET", &path), &Value::Null)
            .await;
        (shown.status, shown.body)
    }

    /// The response of the userinfo endpoint for the user that is signed in in the browser.
    async fn user_info(&self, browser: &mut Browser<'_>) -> Value {
        let address = format!("{}&scope=openid%20email", authorization("social"));
        let code = browser.get(&address).await.parameter("code");
        let body = redemption("social", &code);
        let tokens = self
            .service
            .rest_with(None, ("POST", "/api/v4/oauth"), &body)
            .await;
        let token = tokens.body["access_token"].as_str();
        let token = token.unwrap_or_else(|| panic!("{tokens:?}"));
        let asked = self.service.request(Method::GET, USER_INFO);
        let response = asked.bearer_auth(token).send().await.unwrap();
        response.json().await.unwrap()
    }
}

#[tokio::test]
async fn a_sign_up_needs_an_address_that_the_provider_has_verified() {
    let world = World::start().await;
    for (person, verified) in [
        ("otto", Some(json!(false))),
        ("pia", Some(json!("false"))),
        ("paul", None),
    ] {
        let mut browser = Browser::new(&world.service);
        let refused = world
            .come_back(&mut browser, (person, verified.clone()))
            .await;
        assert_eq!(refused.status, 400, "{person}: {}", refused.text);
        let reason = "an account whose e-mail address the provider has verified";
        assert!(refused.text.contains(reason), "{person}: {}", refused.text);
        assert_eq!(world.user(person).await.0, 404, "{person}");
        let page = browser.get("/account").await;
        assert!(page.text.contains("name=\"password\""), "{}", page.text);
    }
    // Some providers send a string.
    for (person, verified) in [("nora", json!(true)), ("nils", json!("true"))] {
        let mut browser = Browser::new(&world.service);
        let back = world
            .come_back(&mut browser, (person, Some(verified)))
            .await;
        assert_eq!(back.status, 303, "{person}: {}", back.text);
        let email = format!("{person}@example.com");
        let (status, user) = world.user(person).await;
        assert_eq!((status, &user["email"]), (200, &json!(email)), "{user}");
        assert_eq!(user["kind"], "member");
        let info = world.user_info(&mut browser).await;
        assert_eq!(
            (&info["email"], &info["email_verified"]),
            (&json!(email), &json!(true)),
            "{info}"
        );
    }
    // The address matters for the sign-up only: the account is known by its `sub`.
    let mut browser = Browser::new(&world.service);
    let back = world.come_back(&mut browser, ("nora", None)).await;
    assert_eq!(back.status, 303, "{}", back.text);
    let page = browser.get("/account").await;
    assert!(page.text.contains("<strong>nora</strong>"), "{}", page.text);
}
