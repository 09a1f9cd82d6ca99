//! What codes, refresh tokens and secrets are bound to, as the OpenID conformance suite's basic plan
//! asks. `tests/clients/openid-conformance` walks the whole plan.

use reqwest::Method;
use serde_json::{Value, json};

use crate::flows::{client, failure};
use crate::openid::{USER_INFO, id_claims};
use crate::pages::{Browser, CALLBACK, Page, VERIFIER, authorization};
use crate::scopes::{GRAPHQL, send};
use crate::service::{TextResponse, demo};

/// A confidential client, whose secret is sent by HTTP Basic.
struct Party {
    id: &'static str,
    secret: String,
}

impl Party {
    async fn register(id: &'static str) -> Self {
        let made = client(id, json!({"confirm": false})).await;
        let secret = made["secret"].as_str().unwrap().to_owned();
        Self { id, secret }
    }

    /// The response of `/auth` to alice for these parameters.
    async fn authorize(&self, more: &str) -> Page {
        let mut browser = Browser::new(demo());
        let page = browser
            .get(&format!("{}&{more}", authorization(self.id)))
            .await;
        browser.sign_in(&page, "alice").await
    }

    async fn post(&self, form: &[(&str, &str)]) -> TextResponse {
        let request = demo().request(Method::POST, "/api/v4/oauth");
        let request = request.basic_auth(self.id, Some(&self.secret));
        TextResponse::of(request.form(form)).await
    }

    async fn redeem(&self, code: &str) -> TextResponse {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.post(&form).await
    }

    async fn sign_in(&self, more: &str) -> Value {
        let page = self.authorize(more).await;
        let response = self.redeem(&page.parameter("code")).await;
        assert_eq!(response.status, 200, "{more}: {response:?}");
        response.json()
    }
}

#[tokio::test]
async fn a_code_that_is_used_again_ends_the_access_of_its_first_use() {
    let party = Party::register("conformance-reuse").await;
    let page = party.authorize("scope=openid").await;
    let code = page.parameter("code");
    let first = party.redeem(&code).await.json();
    let token = first["access_token"].as_str().unwrap();
    let read = json!({"query": "{__typename}"});
    assert_eq!(send(token, Method::POST, GRAPHQL, &read).await.status, 200);
    let again = party.redeem(&code).await;
    assert_eq!(
        (again.status, &again.json()["error"]),
        (400, &json!("invalid_grant"))
    );
    assert_eq!(send(token, Method::POST, GRAPHQL, &read).await.status, 401);
    let info = send(token, Method::GET, USER_INFO, &Value::Null).await;
    assert_eq!(info.status, 401, "{info:?}");
}

#[tokio::test]
async fn a_refresh_token_is_bound_to_its_client_and_client_secret_post_works() {
    let party = Party::register("conformance-refresh").await;
    let other = Party::register("conformance-other").await;
    let first = party
        .sign_in("scope=openid%20offline_access&prompt=login")
        .await;
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", first["refresh_token"].as_str().unwrap()),
    ];
    let stolen = other.post(&refresh).await;
    assert_eq!(
        (stolen.status, &stolen.json()["error"]),
        (400, &json!("invalid_grant"))
    );
    let again = party.post(&refresh).await.json();
    let (before, after) = (id_claims(&first).await, id_claims(&again).await);
    assert_eq!(
        (&before["sub"], &before["iss"]),
        (&after["sub"], &after["iss"])
    );

    let page = party.authorize("scope=openid").await;
    let mut body = json!({
        "grant_type": "authorization_code", "code": page.parameter("code"),
        "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
        "client_id": party.id, "client_secret": "wrong",
    });
    assert_eq!(failure(&body).await, (401, "invalid_client".to_owned()));
    body["client_secret"] = json!(party.secret);
    id_claims(&crate::openid::tokens(&body).await).await;
}
