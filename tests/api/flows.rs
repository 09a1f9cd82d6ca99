//! Tests the authorization code and device grants with their pages, and sign-up (API.md, "Tokens").

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::pages::{Browser, CALLBACK, Page, VERIFIER, authorization, encoded};
use crate::service::demo;

const URN: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn post(path: &str, body: &Value) -> Response {
    let request = demo().request(Method::POST, path).json(body);
    request.send().await.unwrap()
}

/// Sends a request to the token endpoint. Returns the status, `error` (empty on success) and the
/// body.
async fn token(body: &Value) -> (u16, String, Value) {
    let response = post("/api/v4/oauth", body).await;
    assert_eq!(response.headers()["cache-control"], "no-store");
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    assert!(!text.contains(": "), "a client in use splits on it: {text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    let error = body["error"].as_str().unwrap_or_default().to_owned();
    (status, error, body)
}

pub(crate) async fn failure(body: &Value) -> (u16, String) {
    let (status, error, _) = token(body).await;
    (status, error)
}

/// Registers a client as the demo's owner.
pub(crate) async fn client(id: &str, more: Value) -> Value {
    let mut body = json!({"id": id, "name": format!("Client {id}"), "redirect_uri": [CALLBACK]});
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    let owner = demo().token("demo").await;
    let request = demo().request(Method::POST, "/api/v4/clients");
    let response = request.bearer_auth(owner).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 201);
    response.json().await.unwrap()
}

/// Signs in as alice, from the sign-in page to the code of a client.
async fn code(client_id: &str) -> Page {
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization(client_id)).await;
    let consent = browser.sign_in(&page, "alice").await;
    browser
        .submit(&consent, "decide", &[("decision", "allow")])
        .await
}

pub(crate) fn redemption(client_id: &str, code: &str) -> Value {
    json!({
        "grant_type": "authorization_code", "client_id": client_id, "code": code,
        "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
    })
}

#[tokio::test]
async fn a_code_is_brought_back_and_redeemed_once() {
    let response = code("demo-app").await;
    assert_eq!(response.status, 303);
    assert!(
        response.location.starts_with(&format!("{CALLBACK}?code=")),
        "{}",
        response.location
    );
    assert_eq!(
        (response.parameter("state"), response.parameter("iss")),
        ("xyz".into(), encoded_url(&demo().url))
    );
    let body = redemption("demo-app", &response.parameter("code"));
    for (name, value) in [
        (
            "code_verifier",
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXX",
        ),
        ("redirect_uri", "http://127.0.0.1:5173/callback/"),
        ("code", "nonsense"),
    ] {
        let mut wrong = body.clone();
        wrong[name] = json!(value);
        assert_eq!(
            failure(&wrong).await,
            (400, "invalid_grant".into()),
            "{name}"
        );
    }
    let mut foreign = body.clone();
    foreign["client_id"] = json!("demo-server");
    foreign["client_secret"] = json!("demo-server-secret");
    assert_eq!(failure(&foreign).await, (400, "invalid_grant".into()));
    let mut missing = body.clone();
    missing.as_object_mut().unwrap().remove("code_verifier");
    assert_eq!(failure(&missing).await, (400, "invalid_request".into()));
    let (status, _, tokens) = token(&body).await;
    assert_eq!(status, 200, "what failed did not consume it: {tokens}");
    assert_eq!(tokens["scope"], "");
    let refresh = json!({
        "grant_type": "refresh_token", "client_id": "demo-app",
        "refresh_token": tokens["refresh_token"],
    });
    let (status, _, _) = token(&refresh).await;
    assert_eq!(status, 200);
    assert_eq!(
        failure(&body).await,
        (400, "invalid_grant".into()),
        "the second use"
    );
    assert_eq!(
        failure(&refresh).await,
        (400, "invalid_grant".into()),
        "it ended what the first gave"
    );
}

fn encoded_url(url: &str) -> String {
    url.replace(':', "%3A").replace('/', "%2F")
}

#[tokio::test]
async fn of_ten_parallel_redemptions_exactly_one_succeeds() {
    let body = redemption("demo-app", &code("demo-app").await.parameter("code"));
    let attempts: Vec<_> = (0..10)
        .map(|_| {
            let body = body.clone();
            tokio::spawn(async move { token(&body).await })
        })
        .collect();
    let mut responses = Vec::new();
    for attempt in attempts {
        responses.push(attempt.await.unwrap());
    }
    responses.sort_unstable_by_key(|response| response.0);
    let statuses: Vec<_> = responses.iter().map(|response| response.0).collect();
    assert_eq!(statuses[0], 200, "{statuses:?}");
    assert!(
        statuses[1..].iter().all(|status| *status == 400),
        "{statuses:?}"
    );
    // Nine requests used the code again, so the session of the first one has ended.
    let tokens = &responses[0].2;
    let refresh = json!({
        "grant_type": "refresh_token", "client_id": "demo-app",
        "refresh_token": tokens["refresh_token"],
    });
    assert_eq!(failure(&refresh).await, (400, "invalid_grant".into()));
    let body = json!({"q": "select 1"});
    let access = tokens["access_token"].as_str();
    let dead = demo().rest_with(access, ("POST", "/api/v4/sql"), &body);
    assert_eq!(dead.await.status, 401);
}

#[tokio::test]
async fn a_confidential_client_proves_itself_for_a_code() {
    let mut body = redemption("demo-server", &code("demo-server").await.parameter("code"));
    assert_eq!(failure(&body).await, (401, "invalid_client".into()));
    body["client_secret"] = json!("demo-server-secret");
    assert_eq!(token(&body).await.0, 200);
}

#[tokio::test]
async fn the_authorization_page_answers_each_error_as_it_must() {
    let good = authorization("demo-app");
    let mut browser = Browser::new(demo());
    for bad in [
        good.replace("demo-app", "nobody"),
        good.replace("callback", "Callback"),
        good.replace("callback", "callback%2F"),
        good.replace("callback", "callback%2F..%2Fcallback"),
        good.replace("callback", "callback%23x"),
        good.replace("127%2E0%2E0%2E1", "user%40127%2E0%2E0%2E1"),
        good.replace("127%2E0%2E0%2E1", "127%2E0%2E0%2E1%2Eevil%2Eexample"),
        good.replace("127%2E0%2E0%2E1", "%D0%B0pp%2Eexample"),
        good.replace("http", "javascript"),
        good.replace("redirect_uri", "redirect"),
        format!("{good}&redirect_uri=x"),
        format!("{good}&client_id=demo-app"),
    ] {
        let page = browser.get(&bad).await;
        assert_eq!((page.status, &*page.location), (400, ""), "{bad}");
        assert!(page.text.contains("<h1>"), "{bad}");
    }
    for (bad, error) in [
        (
            good.replace("response_type=code", "response_type=token"),
            "unsupported_response_type",
        ),
        (good.replace("response_type", "x"), "invalid_request"),
        (good.replace("S256", "plain"), "invalid_request"),
        (good.replace("code_challenge=", "x="), "invalid_request"),
        (
            format!("{good}&code_challenge_method=S256"),
            "invalid_request",
        ),
        (format!("{good}&response_type=code"), "invalid_request"),
        (format!("{good}&resource=a&resource=b"), "invalid_request"),
    ] {
        let page = browser.get(&bad).await;
        assert_eq!(
            (page.status, page.parameter("error")),
            (303, error.to_owned()),
            "{bad}"
        );
        assert_eq!(
            (page.parameter("state"), page.parameter("iss")),
            ("xyz".into(), encoded_url(&demo().url))
        );
        assert!(!page.parameter("error_description").is_empty());
    }
    let native = browser.get(&good.replace("5173", "49152")).await;
    assert_eq!(native.status, 200, "a loopback address may have any port");
    client(
        "only-password",
        json!({"public": true, "grants": ["password"]}),
    )
    .await;
    let page = browser
        .get(&good.replace("demo-app", "only-password"))
        .await;
    assert_eq!(page.parameter("error"), "unauthorized_client");
}

#[tokio::test]
async fn denying_sends_access_denied() {
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization("demo-app")).await;
    let consent = browser.sign_in(&page, "alice").await;
    let denied = browser
        .submit(&consent, "decide", &[("decision", "deny")])
        .await;
    assert_eq!(
        (denied.status, denied.parameter("error")),
        (303, "access_denied".into())
    );
    assert_eq!(denied.parameter("state"), "xyz");
}

#[tokio::test]
async fn a_signed_in_browser_is_not_asked_again() {
    client("no-confirm", json!({"public": true, "confirm": false})).await;
    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization("no-confirm")).await;
    let first = browser.sign_in(&page, "alice").await;
    assert!(!first.parameter("code").is_empty());
    let second = browser.get(&authorization("no-confirm")).await;
    assert!(!second.parameter("code").is_empty());
    assert_ne!(first.parameter("code"), second.parameter("code"));
}

async fn device() -> Value {
    let response = post("/api/v4/oauth/device", &json!({"client_id": "demo-app"})).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-store");
    response.json().await.unwrap()
}

fn poll(device: &Value, name: &str) -> Value {
    json!({"grant_type": name, "client_id": "demo-app", "device_code": device["device_code"]})
}

/// Decides about a device, as alice.
async fn decide(device: &Value, decision: &str) -> Page {
    let mut browser = Browser::new(demo());
    let complete = device["verification_uri_complete"].as_str().unwrap();
    let page = browser
        .get(complete.strip_prefix(&demo().url).unwrap())
        .await;
    let typed = device["user_code"].as_str().unwrap();
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let page = browser.sign_in(&page, "alice").await;
    assert!(
        page.text.contains(typed) && page.text.contains("Demo application"),
        "{}",
        page.text
    );
    browser
        .submit(&page, "decide", &[("decision", decision)])
        .await
}

#[tokio::test]
async fn a_device_waits_until_a_person_has_allowed_it() {
    let codes = device().await;
    assert_eq!(
        (&codes["expires_in"], &codes["interval"]),
        (&json!(1800), &json!(5))
    );
    assert_eq!(codes["verification_uri"], format!("{}/device", demo().url));
    let user_code = codes["user_code"].as_str().unwrap();
    let letters = |c: char| c == '-' || "BCDFGHJKLMNPQRSTVWXZ".contains(c);
    assert!(
        user_code.len() == 9 && user_code.chars().all(letters),
        "{user_code}"
    );
    assert_eq!(
        failure(&poll(&codes, URN)).await,
        (400, "authorization_pending".into())
    );
    assert_eq!(failure(&poll(&codes, URN)).await, (400, "slow_down".into()));
    assert_eq!(decide(&codes, "allow").await.status, 200);
    let (status, _, tokens) = token(&poll(&codes, "device_code")).await;
    assert_eq!(status, 200, "{tokens}");
    assert!(tokens["refresh_token"].is_string());
    assert_eq!(
        failure(&poll(&codes, URN)).await,
        (400, "invalid_grant".into()),
        "consumed"
    );
}

#[tokio::test]
async fn of_ten_parallel_polls_of_an_allowed_device_one_succeeds() {
    let codes = device().await;
    assert_eq!(decide(&codes, "allow").await.status, 200);
    let attempts: Vec<_> = (0..10)
        .map(|_| {
            let body = poll(&codes, URN);
            tokio::spawn(async move { failure(&body).await })
        })
        .collect();
    let mut granted = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            (200, _) => granted += 1,
            (400, error) => {
                assert!(matches!(&*error, "invalid_grant" | "slow_down"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(granted, 1);
}

#[tokio::test]
async fn a_device_learns_of_every_other_end() {
    let denied = device().await;
    assert_eq!(decide(&denied, "deny").await.status, 200);
    assert_eq!(
        failure(&poll(&denied, URN)).await,
        (400, "access_denied".into())
    );
    let old = device().await;
    let admin = demo().control().await;
    let age = "update tidegate.device_codes set expires_at = now() where user_code = $1";
    let user_code = old["user_code"].as_str().unwrap().replace('-', "");
    assert_eq!(admin.execute(age, &[&user_code]).await.unwrap(), 1);
    assert_eq!(
        failure(&poll(&old, URN)).await,
        (400, "expired_token".into())
    );
    let unknown = json!({"device_code": "nonsense"});
    assert_eq!(
        failure(&poll(&unknown, URN)).await,
        (400, "invalid_grant".into())
    );
    for (body, status, error) in [
        (json!({}), 400, "invalid_request"),
        (json!({"client_id": "nobody"}), 401, "invalid_client"),
        (json!({"client_id": "demo-server"}), 401, "invalid_client"),
    ] {
        let response = post("/api/v4/oauth/device", &body).await;
        assert_eq!(response.status(), status);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"], error);
    }
}

#[tokio::test]
async fn people_sign_up_where_the_client_allows_it() {
    let query = |client: &str, uri: &str| {
        format!(
            "/signup/?client_id={client}&parentdb=demo&redirect_uri={}",
            encoded(uri)
        )
    };
    let mut browser = Browser::new(demo());
    assert_eq!(browser.get(&query("demo-app", CALLBACK)).await.status, 403);
    client(
        "open-house",
        json!({"public": true, "allow_signup": true, "confirm": false}),
    )
    .await;
    for bad in [
        query("open-house", "https://evil.example/"),
        query("nobody", CALLBACK),
    ] {
        assert_eq!(browser.get(&bad).await.status, 400, "{bad}");
    }
    let bad = query("open-house", CALLBACK).replace("parentdb=demo", "parentdb=other");
    let page = browser.get(&bad).await;
    assert_eq!(page.status, 400);
    assert!(
        page.text.contains("the parentdb is malformed"),
        "{}",
        page.text
    );
    let page = browser.get(&query("open-house", CALLBACK)).await;
    let fields = |name, password| {
        [
            ("username", name),
            ("email", "m@example.org"),
            ("password", password),
        ]
    };
    for (name, password, status) in [
        ("alice", "long-enough", 409),
        ("ALICE", "long-enough", 409),
        ("Demo", "long-enough", 409),
        ("postgres", "long-enough", 409),
        ("pg_monitor", "long-enough", 409),
        ("bad name'; drop role x", "long-enough", 400),
        ("mina", "short", 400),
    ] {
        let again = browser
            .submit(&page, "sign_up", &fields(name, password))
            .await;
        assert_eq!(again.status, status, "{name}");
        assert!(again.text.contains("class=\"error\""), "{name}");
    }
    let done = browser
        .submit(&page, "sign_up", &fields("mina", "mina-1234"))
        .await;
    assert_eq!((done.status, &*done.location), (303, CALLBACK));
    let signed_in = browser.get(&authorization("open-house")).await;
    let body = redemption("open-house", &signed_in.parameter("code"));
    let (status, _, tokens) = token(&body).await;
    assert_eq!(status, 200, "{tokens}");
    let q = json!({"q": "select current_user::text as role"});
    let request = demo().request(Method::POST, "/api/v4/sql").json(&q);
    let access = tokens["access_token"].as_str().unwrap();
    let response = request.bearer_auth(access).send().await.unwrap();
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["data"], json!([{"role": "demo/mina"}]));
}
