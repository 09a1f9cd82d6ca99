//! The ways to sign in, for a member and for users who are converted (docs/API.md, "Members"): the
//! page with OpenID Connect, a link by email, a device, and a new password by email.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::flows::redemption;
use crate::members::{GRAPHQL, USERS};
use crate::openid::{USER_INFO, part};
use crate::pages::{Browser, CALLBACK, Page, authorization};
use crate::service::{Service, demo_folder, eventually};
use crate::smtp_server::{Emails, smtp_server};
use crate::users::{SQL, sign_in};

const NAME: &str = "wanda";
const CLIENT: &str = "ways";
const TOKENS: (&str, &str) = ("POST", "/api/v4/oauth");

/// A table for the members of the group `people`, who see their own rows.
const TABLE: [&str; 4] = [
    "create table ways (title text primary key, author text not null default tidegate.user_id())",
    "alter table ways enable row level security",
    "create policy own on ways using (author = (select tidegate.user_id()))",
    "grant select, insert on ways to \"demo/group/people\"",
];

/// A demo that sends emails, with the member `wanda`.
async fn start() -> (Service, Emails, TempDir) {
    let (url, emails) = smtp_server().await;
    let folder = demo_folder();
    let settings = [
        ("TIDEGATE_SMTP_URL", url.as_str()),
        ("TIDEGATE_MAIL_FROM", "shop@example.com"),
    ];
    let service = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
    let client = json!({"id": CLIENT, "name": "Ways", "public": true, "confirm": false,
        "redirect_uri": [CALLBACK]});
    let member = json!({"name": NAME, "kind": "member", "user_group": "people", "id": "7",
        "email": "wanda@example.com", "password": "password-0"});
    for (path, body) in [("/api/v4/clients", client), (USERS, member)] {
        let made = service.rest(Some("demo"), ("POST", path), &body).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    for q in TABLE {
        service.rows("demo", q, json!(null)).await;
    }
    (service, emails, folder)
}

/// The access token and the other members of a token response, or the error.
async fn granted(service: &Service, body: &Value) -> Result<Value, String> {
    let response = service.rest_with(None, TOKENS, body).await;
    match response.status {
        200 => Ok(response.body),
        _ => Err(response.body["error"].as_str().unwrap().to_owned()),
    }
}

/// The request with which the client redeems the code that a page brought.
fn redemption_of(page: &Page) -> Value {
    assert!(page.location.starts_with(CALLBACK), "{}", page.text);
    redemption(CLIENT, &page.parameter("code"))
}

/// Signs in on the page for an ID token.
async fn by_page(service: &Service, password: &str) -> Value {
    let mut browser = Browser::new(service);
    let start = format!("{}&scope=openid", authorization(CLIENT));
    let page = browser.get(&start).await;
    let fields = [("username", NAME), ("password", password)];
    redemption_of(&browser.submit(&page, "sign_in", &fields).await)
}

/// Allows a device. Returns its request for tokens.
async fn by_device(service: &Service, password: &str) -> Value {
    let start = ("POST", "/api/v4/oauth/device");
    let client = json!({"client_id": CLIENT});
    let codes = service.rest_with(None, start, &client).await.body;
    let mut browser = Browser::new(service);
    let page = browser.get("/device").await;
    let typed = codes["user_code"].as_str().unwrap();
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let fields = [("username", NAME), ("password", password)];
    let page = browser.submit(&page, "sign_in", &fields).await;
    let decision = [("decision", "allow")];
    let allowed = browser.submit(&page, "decide", &decision).await;
    assert_eq!(allowed.status, 200, "{}", allowed.text);
    json!({"grant_type": "device_code", "client_id": CLIENT, "device_code": codes["device_code"]})
}

/// Asks for a link by email, in a browser that came from the application.
async fn ask_for_link(browser: &mut Browser<'_>, service: &Service, emails: &mut Emails) -> String {
    let page = browser.get(&authorization(CLIENT)).await;
    let fields = [("by", "email"), ("username", NAME), ("database", "demo")];
    let sent = browser.submit(&page, "sign_in", &fields).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    emails.link(&service.url).await
}

async fn follow(browser: &mut Browser<'_>, link: &str) -> Value {
    let page = browser.get(link).await;
    redemption_of(&browser.submit(&page, "email", &[]).await)
}

/// Asks for a new password by email, and returns the link.
async fn ask_for_reset(service: &Service, emails: &mut Emails) -> String {
    let mut browser = Browser::new(service);
    let page = browser.get("/reset?database=demo").await;
    let fields = [("username", NAME), ("database", "demo")];
    let sent = browser.submit(&page, "ask", &fields).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    emails.link(&service.url).await
}

/// Follows the link for a new password.
async fn reset(service: &Service, link: &str, password: &str) {
    let mut browser = Browser::new(service);
    let page = browser.get(link).await;
    let fields = [("password", password)];
    let done = browser.submit(&page, "choose", &fields).await;
    assert_eq!(done.status, 200, "{}", done.text);
}

/// Checks that the requests of a token are those of `wanda`, who is of this kind and sees the rows
/// of all her sign-ins.
async fn check(service: &Service, tokens: &Value, (kind, rows): (&str, &mut usize)) {
    let token = tokens["access_token"].as_str();
    let graphql = async |query: String| {
        let body = json!({"query": query});
        let response = service.rest_with(token, ("POST", GRAPHQL), &body).await;
        assert!(response.body["data"].is_object(), "{kind}: {response:?}");
        response.body["data"].clone()
    };
    let insert = format!("mutation {{ insertWays(data: {{title: \"{rows}\"}}) {{ author }} }}");
    let inserted = graphql(insert).await;
    assert_eq!(inserted["insertWays"], json!([{"author": "7"}]), "{kind}");
    *rows += 1;
    let seen = graphql("{ getWays { title } }".to_owned()).await;
    assert_eq!(seen["getWays"].as_array().unwrap().len(), *rows, "{kind}");
    let q = json!({"q": "select current_user::text as role"});
    let response = service.rest_with(token, SQL, &q).await;
    if kind == "member" {
        assert_eq!(response.status, 403, "{response:?}");
    } else {
        assert_eq!(
            response.body["data"][0]["role"], "demo/wanda",
            "{response:?}"
        );
    }
}

#[tokio::test]
async fn every_way_to_sign_in_stays_when_a_user_is_converted() {
    let (service, mut emails, _folder) = start().await;
    let mut rows = 0;
    let mut password = "password-0".to_owned();
    for (round, kind) in ["member", "role", "member"].into_iter().enumerate() {
        // Sign-ins that the user starts before its kind changes.
        let mut browser = Browser::new(&service);
        let link = ask_for_link(&mut browser, &service, &mut emails).await;
        let forgotten = ask_for_reset(&service, &mut emails).await;
        let code = by_page(&service, &password).await;
        let device = by_device(&service, &password).await;
        let change = json!({"kind": kind});
        let path = format!("{USERS}/{NAME}");
        let changed = service.rest(Some("demo"), ("PATCH", &path), &change);
        assert_eq!(changed.await.status, 303);
        eventually("the table is in the schema", async || {
            let tokens = sign_in(&service, NAME, &password).await;
            let query = json!({"query": "{ getWays { title } }"});
            let token = tokens.body["access_token"].as_str();
            let response = service.rest_with(token, ("POST", GRAPHQL), &query).await;
            response.body["data"].is_object()
        })
        .await;
        // A code or a device that was approved before the change gives no token afterwards.
        for request in [code, device] {
            match granted(&service, &request).await {
                Ok(tokens) if round == 0 => check(&service, &tokens, (kind, &mut rows)).await,
                response => assert_eq!(response.unwrap_err(), "invalid_grant", "{kind}"),
            }
        }
        // A link by email names the user, of whichever kind.
        let linked = follow(&mut browser, &link).await;
        let linked = granted(&service, &linked).await.unwrap();
        check(&service, &linked, (kind, &mut rows)).await;
        let next = format!("password-{}", round + 1);
        reset(&service, &forgotten, &next).await;
        let old = sign_in(&service, NAME, &password).await;
        assert_eq!(old.status, 400, "{old:?}");
        password = next;
        let page = by_page(&service, &password).await;
        let device = by_device(&service, &password).await;
        for request in [page, device] {
            let tokens = granted(&service, &request).await.unwrap();
            check(&service, &tokens, (kind, &mut rows)).await;
            if let Some(id_token) = tokens["id_token"].as_str() {
                // The application sees the same person.
                let token = tokens["access_token"].as_str();
                let info = service.rest_with(token, ("GET", USER_INFO), &Value::Null);
                for claims in [part(id_token, 1), info.await.body] {
                    assert_eq!(claims["sub"], "demo/7", "{kind}");
                    assert_eq!(claims["user_id"], "7", "{kind}");
                }
            }
            let refresh = json!({"grant_type": "refresh_token", "client_id": CLIENT,
                "refresh_token": tokens["refresh_token"]});
            let renewed = granted(&service, &refresh).await.unwrap();
            check(&service, &renewed, (kind, &mut rows)).await;
        }
    }
}
