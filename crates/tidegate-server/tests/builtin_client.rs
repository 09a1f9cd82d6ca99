//! Tests of the built-in client `tidegate`: users of every tenant, pages of the service, and
//! loopback redirect URIs.

use http::Method;
use serde_json::{Value, json};
use tidegate_identity::TenantName;
use tidegate_oauth::NewClient;

use crate::fixture::{Api, TestResponse, request};
use crate::pages::{Browser, encoded};

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const CONSOLE: &str = "http://127.0.0.1:8080/console/";

fn address(client: &str, redirect_uri: &str, more: &str) -> String {
    format!(
        "/auth?response_type=code&client_id={client}&redirect_uri={}&state=s\
         &code_challenge={CHALLENGE}&code_challenge_method=S256{more}",
        encoded(redirect_uri)
    )
}

async fn signed_in(api: &Api, address: &str, user: [&str; 3]) -> (Browser, TestResponse) {
    let mut browser = Browser::default();
    let page = browser.get(api, address).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let [database, username, password] = user;
    let fields = [
        ("username", username),
        ("password", password),
        ("database", database),
    ];
    let response = browser.post(api, (&page, "sign_in"), &fields).await;
    (browser, response)
}

fn code(response: &TestResponse) -> String {
    assert_eq!(response.status, 303, "{}", response.text());
    let location = response.header("location");
    let (_, code) = location
        .split_once("?code=")
        .unwrap_or_else(|| panic!("{location}"));
    code.split('&').next().unwrap().to_owned()
}

async fn redeemed(api: &Api, client: &str, code: &str, verifier: &str) -> TestResponse {
    let body = json!({
        "grant_type": "authorization_code", "client_id": client, "code": code,
        "redirect_uri": CONSOLE, "code_verifier": verifier,
    });
    api.post("/api/v4/oauth", &body).await
}

#[tokio::test]
async fn users_of_every_tenant_sign_in_on_the_console_without_consent() {
    let api = Api::start().await;
    for user in [
        ["demo", "demo", "demo1234"],
        ["demo", "alice", "alice1234"],
        ["lonely", "lonely", "lonely1234"],
    ] {
        let address = address("tidegate", CONSOLE, "");
        let (mut browser, response) = signed_in(&api, &address, user).await;
        assert_eq!(response.status, 303, "{}", response.text());
        let back = browser.get(&api, &address).await;
        assert!(back.header("location").starts_with(CONSOLE));
        let tokens = redeemed(&api, "tidegate", &code(&back), VERIFIER).await;
        assert_eq!(tokens.status, 200, "{}", tokens.text());
        let refresh = json!({
            "grant_type": "refresh_token", "client_id": "tidegate",
            "refresh_token": tokens.json()["refresh_token"],
        });
        assert_eq!(api.post("/api/v4/oauth", &refresh).await.status, 200);
        let sessions = api.get_as("/api/v4/sessions", &tokens.json()).await;
        assert_eq!(sessions.json()[0]["user"], user[1]);
    }
}

#[tokio::test]
async fn a_program_on_a_loopback_port_needs_consent() {
    let api = Api::start().await;
    let address = address("gc2-cli", "http://127.0.0.1:5657/auth/callback", "");
    let user = ["demo", "alice", "alice1234"];
    let (mut browser, _) = signed_in(&api, &address, user).await;
    let page = browser.get(&api, &address).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("A program on this computer"));
    let allowed = [("decision", "allow")];
    let back = browser.post(&api, (&page, "decide"), &allowed).await;
    let location = back.header("location").to_owned();
    assert!(location.starts_with("http://127.0.0.1:5657/auth/callback?code="));
}

#[tokio::test]
async fn foreign_addresses_get_no_redirect() {
    let api = Api::start().await;
    for uri in [
        "https://evil.example/console/",
        "http://127.0.0.1:8080.evil.example/console/",
        "http://127.0.0.1:8080@evil.example/console/",
        "http://localhost:9/console/",
        "https://127.0.0.1:8080/console/",
        "http://10.0.0.7:8080/console/",
        "com.evil.app:/cb",
        "javascript:alert(1)//",
    ] {
        for client in ["tidegate", "gc2-cli"] {
            let response = api.get(&address(client, uri, "")).await;
            assert_eq!(response.status, 400, "{uri}");
            assert_eq!(response.header("location"), "", "{uri}");
            let response = api
                .get(&format!("/signout?redirect_uri={}", encoded(uri)))
                .await;
            assert_eq!(
                (response.status.as_u16(), response.header("location")),
                (200, "")
            );
        }
    }
}

/// The pages of the service follow from its configured URL, never from the request.
#[tokio::test]
async fn the_host_of_a_request_adds_no_page() {
    let api = Api::start().await;
    for (name, value) in [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "host=evil.example"),
    ] {
        let path = address("tidegate", "https://evil.example/console/", "");
        let mut asked = request(Method::GET, &path);
        if name == "host" {
            asked.headers_mut().unwrap().clear();
        }
        let asked = asked.header(name, value).body(String::new()).unwrap();
        let response = api.call(asked).await;
        assert_eq!(
            (response.status.as_u16(), response.header("location")),
            (400, ""),
            "{name}"
        );
    }
}

#[tokio::test]
async fn pkce_is_required() {
    let api = Api::start().await;
    for query in [
        "",
        "&code_challenge_method=plain",
        "&code_challenge_method=S256",
    ] {
        let path = format!(
            "/auth?response_type=code&client_id=tidegate&redirect_uri={}{query}",
            encoded(CONSOLE)
        );
        let response = api.get(&path).await;
        assert_eq!(response.status, 303);
        let location = response.header("location");
        assert!(location.contains("error=invalid_request"), "{location}");
    }
    let address = address("tidegate", CONSOLE, "");
    let (mut browser, _) = signed_in(&api, &address, ["demo", "demo", "demo1234"]).await;
    let code = code(&browser.get(&api, &address).await);
    let other = "x".repeat(43);
    let response = redeemed(&api, "tidegate", &code, &other).await;
    assert_eq!(response.json()["error"], "invalid_grant");
    // A failed attempt does not use up the code.
    assert_eq!(
        redeemed(&api, "tidegate", &code, VERIFIER).await.status,
        200
    );
}

#[tokio::test]
async fn a_code_is_redeemed_by_its_own_client_only() {
    let api = Api::start().await;
    let address = address("tidegate", CONSOLE, "");
    let (mut browser, _) = signed_in(&api, &address, ["demo", "demo", "demo1234"]).await;
    let code = code(&browser.get(&api, &address).await);
    for client in ["gc2-cli", "app"] {
        let response = redeemed(&api, client, &code, VERIFIER).await;
        assert_eq!(response.json()["error"], "invalid_grant", "{client}");
    }
    // The client of a tenant may not redirect to the pages of the service.
    let path = self::address("app", CONSOLE, "");
    assert_eq!(api.get(&path).await.header("location"), "");
}

#[tokio::test]
async fn other_grants_are_refused() {
    let api = Api::start().await;
    let password = json!({
        "grant_type": "password", "client_id": "tidegate", "username": "alice",
        "password": "alice1234", "database": "demo",
    });
    let response = api.post("/api/v4/oauth", &password).await;
    assert_eq!(response.json()["error"], "unauthorized_client");
    let guest = json!({"client_id": "tidegate", "database": "demo"});
    let response = api.post("/api/v4/oauth/guest", &guest).await;
    assert_eq!(response.json()["error"], "unauthorized_client");
    let about = json!({"client_id": "tidegate", "token": "x"});
    let response = api.post("/api/v4/oauth/introspect", &about).await;
    assert_eq!(response.json()["error"], "invalid_client");
}

#[tokio::test]
async fn no_tenant_registers_a_built_in_id() {
    let api = Api::start().await;
    let ids = ["tidegate".to_owned(), "gc2-cli".to_owned()];
    let clients = api.issuer.clients();
    for id in ids {
        let tenant = TenantName::parse("lonely").unwrap();
        let uris = vec!["https://evil.example/".to_owned()];
        let mut client = NewClient::new(tenant, "Evil", uris);
        client.id = Some(id.clone());
        let error = clients.create_client(client.clone()).await.unwrap_err();
        assert_eq!(error.code(), "ALREADY_EXISTS");
        // A client that was registered before its id became a built-in one has no effect.
        api.clients.create_client(client).await.unwrap();
        let response = api.get(&address(&id, "https://evil.example/", "")).await;
        assert_eq!(
            (response.status.as_u16(), response.header("location")),
            (400, "")
        );
    }
}

#[tokio::test]
async fn the_named_database_fills_the_form_and_is_the_only_one() {
    let api = Api::start().await;
    let address = address("tidegate", CONSOLE, "&database=demo");
    let mut browser = Browser::default();
    let page = browser.get(&api, &address).await;
    assert!(page.text().contains("value=\"demo\""), "{}", page.text());
    let lonely = ["lonely", "lonely", "lonely1234"];
    let (_, refused) = signed_in(&api, &address, lonely).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused
            .text()
            .contains("This sign-in is for the database demo.")
    );
    // A user who is signed in to another database must sign in to this one.
    let any = self::address("tidegate", CONSOLE, "");
    let (mut browser, _) = signed_in(&api, &any, lonely).await;
    let page = browser.get(&api, &address).await;
    assert_eq!(page.status, 200);
    assert!(page.text().contains("You are signed in as lonely"));
}

#[tokio::test]
async fn the_console_is_where_sign_out_may_return() {
    let api = Api::start().await;
    let path = format!("/signout?redirect_uri={}", encoded(CONSOLE));
    let response = api.get(&path).await;
    assert_eq!(
        (response.status.as_u16(), response.header("location")),
        (303, CONSOLE)
    );
}

#[tokio::test]
async fn a_device_signs_in_through_the_built_in_client() {
    let api = Api::start().await;
    let device = api
        .post("/api/v4/oauth/device", &json!({"client_id": "gc2-cli"}))
        .await;
    assert_eq!(device.status, 200, "{}", device.text());
    let device: Value = device.json();
    let user_code = device["user_code"].as_str().unwrap();
    let address = format!("/device?step=confirm&user_code={user_code}");
    let user = ["lonely", "lonely", "lonely1234"];
    let (mut browser, _) = signed_in(&api, &address, user).await;
    let page = browser.get(&api, &address).await;
    let allowed = [("decision", "allow")];
    assert_eq!(
        browser.post(&api, (&page, "decide"), &allowed).await.status,
        200
    );
    let grant = json!({
        "grant_type": "device_code", "client_id": "gc2-cli",
        "device_code": device["device_code"],
    });
    assert_eq!(api.post("/api/v4/oauth", &grant).await.status, 200);
}
