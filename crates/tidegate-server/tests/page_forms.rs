//! Tests of what the pages refuse: forged forms, guessed device codes, and names with markup.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tidegate_identity::TenantName;
use tidegate_oauth::NewClient;

use crate::fixture::{Api, TestResponse, request};
use crate::pages::{ALICE, Browser, CALLBACK, QUERY, encoded, form, signed_in};
use crate::ports::connected;

/// Submits the form of a step without its token, with the token of another browser, and from
/// another site. All three must be refused.
pub(crate) async fn only_from_here(
    api: &Api,
    browser: &Browser,
    (page, step): (&TestResponse, &str),
    more: &str,
) {
    let (action, good) = form(page, step);
    let mut stranger = Browser::default();
    let foreign = stranger.get(api, "/device").await;
    let (_, stolen) = form(&foreign, "code");
    let stolen = stolen.replace("step=code", &format!("step={step}"));
    for (body, headers) in [
        (format!("step={step}{more}"), &[][..]),
        (format!("{stolen}{more}"), &[]),
        (
            format!("{good}{more}"),
            &[("origin", "https://evil.example")],
        ),
        (format!("{good}{more}"), &[("sec-fetch-site", "cross-site")]),
    ] {
        let mut own = Browser {
            cookie: browser.cookie.clone(),
        };
        let response = own.send(api, &action, headers, body.clone()).await;
        assert_eq!(response.status, 403, "{step} {body} {headers:?}");
        assert_eq!(response.header("location"), "", "{step}");
    }
}

async fn device(api: &Api) -> Value {
    let body = json!({"client_id": "app"});
    api.post("/api/v4/oauth/device", &body).await.json()
}

#[tokio::test]
async fn every_form_has_to_be_ours() {
    let api = Api::start().await;
    let mut browser = signed_in(&api).await;
    let consent = browser.get(&api, &format!("/auth?{QUERY}")).await;
    let allow = "&decision=allow";
    only_from_here(&api, &browser, (&consent, "decide"), allow).await;

    let codes = device(&api).await;
    let typed = codes["user_code"].as_str().unwrap();
    let page = browser.get(&api, "/device").await;
    let more = format!("&user_code={typed}");
    only_from_here(&api, &browser, (&page, "code"), &more).await;
    let next = browser
        .post(&api, (&page, "code"), &[("user_code", typed)])
        .await;
    let page = browser.get(&api, next.header("location")).await;
    only_from_here(&api, &browser, (&page, "decide"), allow).await;
    let poll = json!({
        "grant_type": "device_code", "client_id": "app", "device_code": codes["device_code"],
    });
    let polled = api.post("/api/v4/oauth", &poll).await;
    assert_eq!(
        polled.json()["error"],
        "authorization_pending",
        "nothing was decided"
    );

    let page = browser.get(&api, "/signout").await;
    only_from_here(&api, &browser, (&page, "sign_out"), "").await;
    let account = browser.get(&api, "/account").await;
    assert!(account.text().contains("Your account"), "still signed in");
    let more = "&password=alice1234&new_password=taken-over-1";
    only_from_here(&api, &browser, (&account, "change_password"), more).await;
    api.token("alice").await;
}

#[tokio::test]
async fn every_form_of_the_account_page_has_to_be_ours() {
    let api = Api::start().await;
    let token = api.token("alice").await;
    let mut other = signed_in(&api).await;
    let mut browser = signed_in(&api).await;
    let page = browser.get(&api, "/account").await;
    let value = |name: &str| {
        let mark = format!("name=\"{name}\" value=\"");
        let (_, rest) = page.text().split_once(&mark).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let more = format!("&session={}", value("session"));
    only_from_here(&api, &browser, (&page, "end_session"), &more).await;
    let sql =
        request(Method::POST, "/api/v4/sql").header("authorization", format!("Bearer {token}"));
    let alive = api
        .call(sql.body("{\"q\":\"select 1\"}".to_owned()).unwrap())
        .await;
    assert_ne!(alive.status, 401, "{}", alive.text());
    let more = format!("&browser={}", value("browser"));
    only_from_here(&api, &browser, (&page, "end_browser"), &more).await;
    let still = other.get(&api, "/account").await;
    assert!(still.text().contains("Your account"), "{}", still.text());

    only_from_here(&api, &browser, (&page, "begin_enrolment"), "").await;
    let enrol = browser.post(&api, (&page, "begin_enrolment"), &[]).await;
    let sealed = {
        let (_, rest) = enrol.text().split_once("name=\"sealed\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let more = format!("&sealed={sealed}&code=000000");
    only_from_here(&api, &browser, (&enrol, "enrol"), &more).await;
    let page = browser.get(&api, "/account").await;
    assert!(
        page.text().contains("value=\"begin_enrolment\""),
        "still off"
    );
    only_from_here(&api, &browser, (&page, "sign_out"), "").await;
    // A forged form cannot remove an existing second factor.
    let forged = page
        .text()
        .replace("begin_enrolment", "remove_second_factor");
    let forged = TestResponse {
        body: forged.into(),
        ..page
    };
    only_from_here(&api, &browser, (&forged, "remove_second_factor"), "").await;
}

/// The enrolment ends with a new browser session, with which a passkey can be added.
#[tokio::test]
async fn two_step_sign_in_is_set_up_after_a_recent_sign_in_only() {
    let api = Api::start().await;
    let mut browser = signed_in(&api).await;
    api.clock.advance(Duration::from_mins(10));
    let account = browser.get(&api, "/account").await;
    let asked = browser.post(&api, (&account, "begin_enrolment"), &[]).await;
    assert!(asked.text().contains("Is it you?"), "{}", asked.text());
    assert!(!asked.text().contains("name=\"sealed\""));
    let wrong = [("password", "alice4321")];
    let refused = browser
        .post(&api, (&asked, "begin_enrolment"), &wrong)
        .await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(!refused.text().contains("name=\"sealed\""));
    let right = [("password", "alice1234")];
    let page = browser
        .post(&api, (&refused, "begin_enrolment"), &right)
        .await;
    assert!(page.text().contains("name=\"sealed\""), "{}", page.text());
}

#[tokio::test]
async fn an_account_is_made_from_our_own_page_only() {
    let (api, mailbox) = connected().await;
    let open = NewClient {
        id: Some("open".to_owned()),
        public: true,
        allow_signup: true,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            "Open",
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(open).await.unwrap();
    let mut browser = Browser::default();
    let path = format!(
        "/signup/?client_id=open&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let page = browser.get(&api, &path).await;
    let more = "&username=mallory&email=m%40example.org&password=mallory-1234";
    only_from_here(&api, &browser, (&page, "sign_up"), more).await;
    assert_eq!(mailbox.len(), 0, "nobody is invited");
    let more = [
        ("username", "mallory"),
        ("email", "m@example.org"),
        ("password", "mallory-1234"),
    ];
    browser.post(&api, (&page, "sign_up"), &more).await;
    mailbox.messages(1).await;
}

#[tokio::test]
async fn a_signed_in_browser_may_guess_five_device_codes() {
    let api = Api::start().await;
    let codes = device(&api).await;
    let typed = codes["user_code"].as_str().unwrap();
    let mut browser = signed_in(&api).await;
    let page = browser.get(&api, "/device").await;
    for _ in 0..5 {
        let guess = [("user_code", "BBBB-BBBB")];
        let refused = browser.post(&api, (&page, "code"), &guess).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
    }
    let right = [("user_code", typed)];
    let late = browser.post(&api, (&page, "code"), &right).await;
    assert_eq!(late.status, 429, "{}", late.text());
    // The address still has attempts, so another user can continue.
    let mut other = signed_in(&api).await;
    let page = other.get(&api, "/device").await;
    assert_eq!(other.post(&api, (&page, "code"), &right).await.status, 303);
    api.clock.advance(std::time::Duration::from_secs(31));
    let page = browser.get(&api, "/device").await;
    assert_eq!(
        browser.post(&api, (&page, "code"), &right).await.status,
        303
    );
}

#[tokio::test]
async fn a_device_code_is_not_guessed_at_the_page() {
    let api = Api::start().await;
    let codes = device(&api).await;
    let typed = codes["user_code"].as_str().unwrap();
    let mut statuses = Vec::new();
    for _ in 0..10 {
        // Each attempt uses another browser, so that only the address is counted.
        let mut browser = Browser::default();
        let page = browser.get(&api, "/device").await;
        let guess = [("user_code", "BBBB-BBBB")];
        statuses.push(
            browser
                .post(&api, (&page, "code"), &guess)
                .await
                .status
                .as_u16(),
        );
    }
    assert_eq!(statuses, [400; 10]);
    let mut browser = Browser::default();
    let page = browser.get(&api, "/device").await;
    let late = browser
        .post(&api, (&page, "code"), &[("user_code", typed)])
        .await;
    assert_eq!(
        late.status,
        429,
        "not even the right one now: {}",
        late.text()
    );
    assert!(late.header("retry-after").parse::<u64>().unwrap() > 0);
    api.clock.advance(std::time::Duration::from_secs(61));
    let later = browser
        .post(&api, (&page, "code"), &[("user_code", typed)])
        .await;
    assert_eq!(later.status, 303);
}

#[tokio::test]
async fn a_clients_name_is_text_on_every_page_that_shows_it() {
    let api = Api::start().await;
    let evil = "<script>alert(1)</script>\"'&";
    let client = NewClient {
        id: Some("evil".to_owned()),
        public: true,
        allow_signup: true,
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            evil,
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(client).await.unwrap();
    let body = json!({"client_id": "evil"});
    let codes = api.post("/api/v4/oauth/device", &body).await.json();
    let body = json!({
        "grant_type": "password", "client_id": "evil", "database": "demo",
        "username": "alice", "password": "alice1234",
    });
    assert_eq!(api.post("/api/v4/oauth", &body).await.status, 200);
    let mut browser = signed_in(&api).await;
    let page = browser.get(&api, "/device").await;
    let typed = [("user_code", codes["user_code"].as_str().unwrap())];
    let next = browser.post(&api, (&page, "code"), &typed).await;
    let decide = browser.get(&api, next.header("location")).await;
    let account = browser.get(&api, "/account").await;
    for page in [&decide, &account] {
        assert!(!page.text().contains("<script"), "{}", page.text());
        assert!(page.text().contains("&lt;script&gt;"), "{}", page.text());
    }
    let sign_up = format!(
        "/signup/?client_id=evil&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let page = browser.get(&api, &sign_up).await;
    assert!(!page.text().contains("<script"), "{}", page.text());
}

#[tokio::test]
async fn a_service_at_https_gives_a_cookie_that_no_neighbour_can_plant() {
    let api = Api::at("https://id.example", |builder| builder).await;
    let browser = signed_in(&api).await;
    let page = api.get(&format!("/auth?{QUERY}")).await;
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-tidegate="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    let account = async |cookie: &str| {
        let request = request(Method::GET, "/account").header("cookie", cookie);
        api.call(request.body(String::new()).unwrap()).await
    };
    let own = account(&browser.cookie).await;
    assert!(own.text().contains("Your account"), "{}", own.text());
    let planted = browser.cookie.replace("__Host-", "");
    let nobody = account(&planted).await;
    assert!(
        nobody.text().contains("name=\"password\""),
        "without the prefix"
    );
}

#[tokio::test]
async fn a_session_of_a_browser_ends_by_itself() {
    let api = Api::start().await;
    let mut browser = signed_in(&api).await;
    api.clock.advance(std::time::Duration::from_hours(25));
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    assert!(page.text().contains("name=\"password\""), "asked again");
    let again = browser.post(&api, (&page, "sign_in"), &ALICE).await;
    assert_eq!(again.status, 303);
}
