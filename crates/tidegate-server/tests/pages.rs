//! Tests of the pages over HTTP: responses and forms.

mod protection;

use std::fmt::Write as _;

use http::Method;
use serde_json::json;
use tidegate_identity::TenantName;
use tidegate_oauth::NewClient;

use crate::fixture::{Api, TestResponse, request};

pub(crate) const CALLBACK: &str = "http://127.0.0.1:5173/callback";
pub(crate) const QUERY: &str = "response_type=code&client_id=app\
    &redirect_uri=http%3A%2F%2F127.0.0.1%3A5173%2Fcallback&state=s%201\
    &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256";

/// A browser, which stores its cookie and submits the forms that it gets.
#[derive(Default)]
pub(crate) struct Browser {
    pub(crate) cookie: String,
}

impl Browser {
    pub(crate) async fn get(&mut self, api: &Api, address: &str) -> TestResponse {
        let request = request(Method::GET, address).header("cookie", &self.cookie);
        let response = api.call(request.body(String::new()).unwrap()).await;
        self.keep(&response);
        response
    }

    /// Submits the form of a step in `page`, with these fields added.
    pub(crate) async fn post(
        &mut self,
        api: &Api,
        (page, step): (&TestResponse, &str),
        fields: &[(&str, &str)],
    ) -> TestResponse {
        let (action, mut body) = form(page, step);
        for (name, value) in fields {
            write!(body, "&{name}={}", encoded(value)).unwrap();
        }
        self.send(api, &action, &[], body).await
    }

    pub(crate) async fn send(
        &mut self,
        api: &Api,
        action: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> TestResponse {
        let mut request = request(Method::POST, action)
            .header("cookie", &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = api.call(request.body(body).unwrap()).await;
        self.keep(&response);
        response
    }

    fn keep(&mut self, response: &TestResponse) {
        if let Some((pair, _)) = response.header("set-cookie").split_once(';') {
            pair.clone_into(&mut self.cookie);
        }
    }
}

pub(crate) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The action of the form for a step, and its hidden fields.
pub(crate) fn form(page: &TestResponse, step: &str) -> (String, String) {
    let mark = format!("name=\"step\" value=\"{step}\"");
    let form = page
        .text()
        .split("<form ")
        .find(|form| form.contains(&mark));
    let form = form.unwrap_or_else(|| panic!("no form {step}: {}", page.text()));
    let value = |name: &str| {
        let (_, rest) = form.split_once(&format!("{name}=\"")).unwrap();
        rest.split('"').next().unwrap().replace("&amp;", "&")
    };
    let (_, token) = form.split_once("name=\"form_token\" value=\"").unwrap();
    let token = token.split('"').next().unwrap();
    (value("action"), format!("form_token={token}&step={step}"))
}

pub(crate) const ALICE: [(&str, &str); 2] = [("username", "alice"), ("password", "alice1234")];

pub(crate) async fn signed_in(api: &Api) -> Browser {
    let mut browser = Browser::default();
    let page = browser.get(api, &format!("/auth?{QUERY}")).await;
    let response = browser.post(api, (&page, "sign_in"), &ALICE).await;
    assert_eq!(response.status, 303, "{}", response.text());
    assert_eq!(response.header("location"), format!("/auth?{QUERY}"));
    browser
}

#[tokio::test]
async fn a_person_signs_in_consents_and_brings_a_code() {
    let api = Api::start().await;
    let mut browser = signed_in(&api).await;
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("name=\"decision\" value=\"allow\""));
    assert!(page.text().contains("Returns to "), "{}", page.text());
    let response = browser
        .post(&api, (&page, "decide"), &[("decision", "allow")])
        .await;
    assert_eq!(response.status, 303);
    let location = response.header("location");
    assert!(
        location.starts_with(&format!("{CALLBACK}?code=")),
        "{location}"
    );
    assert!(
        location.ends_with("&state=s%201&iss=http%3A%2F%2F127.0.0.1%3A8080"),
        "{location}"
    );
    let code = location.split(['=', '&']).nth(1).unwrap();
    let body = json!({
        "grant_type": "authorization_code", "client_id": "app", "code": code,
        "redirect_uri": CALLBACK, "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    });
    let tokens = api.post("/api/v4/oauth", &body).await;
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    let denied = browser
        .post(&api, (&page, "decide"), &[("decision", "deny")])
        .await;
    assert!(
        denied
            .header("location")
            .starts_with(&format!("{CALLBACK}?error=access_denied&"))
    );
}

#[tokio::test]
async fn a_client_without_consent_gets_its_code_at_once() {
    let api = Api::start().await;
    let trusted = NewClient {
        id: Some("trusted".to_owned()),
        public: true,
        confirm: false,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Trusted",
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(trusted).await.unwrap();
    let mut browser = signed_in(&api).await;
    let address = format!(
        "/auth?{}",
        QUERY.replace("client_id=app", "client_id=trusted")
    );
    let head = request(Method::HEAD, &address).header("cookie", &browser.cookie);
    let head = api.call(head.body(String::new()).unwrap()).await;
    assert_eq!(head.status, 200, "who only looks gets no code");
    assert!(head.body.is_empty());
    let response = browser.get(&api, &address).await;
    assert!(
        response
            .header("location")
            .starts_with(&format!("{CALLBACK}?code="))
    );
}

#[tokio::test]
async fn a_device_is_connected_by_its_code() {
    let api = Api::start().await;
    let codes = api
        .post("/api/v4/oauth/device", &json!({"client_id": "app"}))
        .await
        .json();
    let (typed, code) = (codes["user_code"].as_str().unwrap(), &codes["device_code"]);
    let poll = async |name: &str| {
        let body = json!({"grant_type": name, "client_id": "app", "device_code": code});
        api.post("/api/v4/oauth", &body).await
    };
    assert_eq!(
        poll("device_code").await.json()["error"],
        "authorization_pending"
    );
    let mut browser = Browser::default();
    let complete = codes["verification_uri_complete"].as_str().unwrap();
    let (_, complete) = complete.split_once("8080").unwrap();
    let page = browser.get(&api, complete).await;
    assert!(
        page.text().contains(&format!("value=\"{typed}\"")),
        "prefilled"
    );
    assert!(
        !page.text().contains("value=\"allow\""),
        "and still to be confirmed"
    );
    let wrong = browser
        .post(&api, (&page, "code"), &[("user_code", "BBBB-BBBB")])
        .await;
    assert_eq!(wrong.status, 400);
    let sloppy = typed.to_lowercase().replace('-', "");
    let next = browser
        .post(&api, (&page, "code"), &[("user_code", &sloppy)])
        .await;
    let page = browser.get(&api, next.header("location")).await;
    let next = browser.post(&api, (&page, "sign_in"), &ALICE).await;
    let page = browser.get(&api, next.header("location")).await;
    for part in [typed, "alice", "App", "value=\"allow\"", "value=\"deny\""] {
        assert!(page.text().contains(part), "{part}: {}", page.text());
    }
    let done = browser
        .post(&api, (&page, "decide"), &[("decision", "allow")])
        .await;
    assert_eq!(done.status, 200);
    let tokens = poll("urn:ietf:params:oauth:grant-type:device_code").await;
    assert_eq!(tokens.status, 200, "{}", tokens.text());
    let again = browser
        .post(&api, (&page, "decide"), &[("decision", "allow")])
        .await;
    assert_eq!(again.status, 400, "it is decided");
}

#[tokio::test]
async fn signing_out_is_asked_for_and_returns_to_registered_addresses_only() {
    let api = Api::start().await;
    for (uri, leads) in [(CALLBACK, true), ("https://evil.example/", false)] {
        let mut browser = signed_in(&api).await;
        let page = browser
            .get(&api, &format!("/signout?redirect_uri={}", encoded(uri)))
            .await;
        assert_eq!(page.status, 200, "a link alone signs nobody out");
        let response = browser.post(&api, (&page, "sign_out"), &[]).await;
        assert_eq!(response.header("location"), if leads { uri } else { "" });
        let page = browser.get(&api, "/account").await;
        assert!(
            page.text().contains("name=\"password\""),
            "nobody is signed in"
        );
    }
}

#[tokio::test]
async fn a_deleted_user_is_redirected_to_registered_uris_only() {
    let api = Api::start().await;
    for (uri, leads) in [
        (CALLBACK, true),
        ("http://127.0.0.1:49152/callback", true),
        ("http://127.0.0.1:5173/callback/", false),
        ("http://127.0.0.1", false),
        ("https://evil.example/", false),
        ("", false),
    ] {
        let address = format!("/signout?redirect_uri={}", encoded(uri));
        let page = api.get(&address).await;
        assert_eq!(
            page.header("location"),
            if leads { uri } else { "" },
            "{uri}"
        );
        assert_eq!(page.status, if leads { 303 } else { 200 }, "{uri}");
    }
}

#[tokio::test]
async fn the_account_page_ends_sessions_and_changes_the_password() {
    let api = Api::start().await;
    let token = api.token("alice").await;
    let (mut browser, mut other) = (signed_in(&api).await, signed_in(&api).await);
    let page = browser.get(&api, "/account").await;
    let (_, session) = page.text().split_once("name=\"session\" value=\"").unwrap();
    let session = session.split('"').next().unwrap().to_owned();
    let done = browser
        .post(&api, (&page, "end_session"), &[("session", &session)])
        .await;
    assert_eq!(done.status, 200, "{}", done.text());
    let bearer =
        request(Method::POST, "/api/v4/sql").header("authorization", format!("Bearer {token}"));
    let dead = api
        .call(bearer.body("{\"q\":\"select 1\"}".to_owned()).unwrap())
        .await;
    assert_eq!(dead.status, 401, "its access token too");
    let foreign = "A".repeat(22);
    let none = browser
        .post(&api, (&page, "end_session"), &[("session", &foreign)])
        .await;
    assert_eq!(none.status, 200, "nothing to end");
    let wrong = [
        ("password", "wrong-password"),
        ("new_password", "alice-9876"),
    ];
    let refused = browser.post(&api, (&page, "change_password"), &wrong).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .text()
            .contains("aria-describedby=\"password-error\"")
    );
    let short = [("password", "alice1234"), ("new_password", "short")];
    let refused = browser.post(&api, (&page, "change_password"), &short).await;
    assert!(
        refused.text().contains("new_password-error"),
        "{}",
        refused.text()
    );
    let right = [("password", "alice1234"), ("new_password", "alice-9876")];
    let done = browser.post(&api, (&page, "change_password"), &right).await;
    assert_eq!(done.status, 200);
    let still = browser.get(&api, "/account").await;
    assert!(
        still.text().contains("Your account"),
        "this browser stays signed in"
    );
    let gone = other.get(&api, "/account").await;
    assert!(
        gone.text().contains("name=\"username\""),
        "the other does not"
    );
}
