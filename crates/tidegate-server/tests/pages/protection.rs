//! Tests of the protection of the pages: headers, cookies, form tokens, escaping.

use http::Method;
use tidegate_identity::TenantName;
use tidegate_oauth::NewClient;

use super::{ALICE, Browser, CALLBACK, QUERY, form, signed_in};
use crate::fixture::{Api, TestResponse, request};

#[tokio::test]
async fn every_page_carries_the_headers_that_protect_it() {
    let api = Api::start().await;
    for (path, leads_to) in [
        (format!("/auth?{QUERY}"), " http://127.0.0.1:5173"),
        ("/auth".to_owned(), ""),
        ("/auth/?client_id=nobody".to_owned(), ""),
        ("/device".to_owned(), ""),
        ("/account/".to_owned(), ""),
        ("/signup/?client_id=app".to_owned(), ""),
        ("/signout".to_owned(), ""),
    ] {
        let with_origin = request(Method::GET, &path).header("origin", "https://evil.example");
        let response = api.call(with_origin.body(String::new()).unwrap()).await;
        assert_eq!(
            response.header("content-type"),
            "text/html; charset=utf-8",
            "{path}"
        );
        let policy = format!(
            "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
             form-action 'self'{leads_to}"
        );
        assert_eq!(response.header("content-security-policy"), policy, "{path}");
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("access-control-allow-origin", ""),
        ] {
            assert_eq!(response.header(name), value, "{path} {name}");
        }
        assert!(!response.text().contains("<script"), "{path}");
        let cookie = response.header("set-cookie");
        if !cookie.is_empty() {
            assert!(cookie.starts_with("tidegate="), "{cookie}");
            assert!(
                cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"),
                "{cookie}"
            );
        }
    }
    let preflight = request(Method::OPTIONS, "/auth")
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let response = api.call(preflight.body(String::new()).unwrap()).await;
    assert_eq!(response.header("access-control-allow-origin"), "");
    assert_eq!(response.header("access-control-allow-methods"), "");
}

#[tokio::test]
async fn an_unknown_client_or_address_is_an_error_page() {
    let api = Api::start().await;
    for address in [
        "/auth".to_owned(),
        format!(
            "/auth?{}",
            QUERY.replace("client_id=app", "client_id=nobody")
        ),
        format!("/auth?{}", QUERY.replace("callback", "elsewhere")),
        format!("/auth?{QUERY}&client_id=app"),
        format!(
            "/auth?{}",
            QUERY.replace("127.0.0.1", "127.0.0.1%40evil.example")
        ),
        "/auth?client_id=%ff".to_owned(),
    ] {
        let response = api.get(&address).await;
        assert_eq!(response.status, 400, "{address}");
        assert_eq!(response.header("location"), "", "{address}");
        assert!(response.text().contains("<h1>"), "{address}");
    }
    let wrong = QUERY.replace("S256", "plain");
    let response = api.get(&format!("/auth?{wrong}")).await;
    assert_eq!(response.status, 303);
    assert!(
        response
            .header("location")
            .starts_with(&format!("{CALLBACK}?error=invalid_request&"))
    );
}

#[tokio::test]
async fn a_form_of_another_origin_is_refused() {
    let api = Api::start().await;
    let (mut mine, mut theirs) = (Browser::default(), Browser::default());
    let page = mine.get(&api, &format!("/auth?{QUERY}")).await;
    let foreign = theirs.get(&api, &format!("/auth?{QUERY}")).await;
    let body = |page: &TestResponse| {
        let (action, hidden) = form(page, "sign_in");
        (
            action,
            format!("{hidden}&username=alice&password=alice1234"),
        )
    };
    let (action, good) = body(&page);
    let (_, stolen) = body(&foreign);
    let without = "step=sign_in&username=alice&password=alice1234".to_owned();
    for (text, headers) in [
        (&without, &[][..]),
        (&stolen, &[]),
        (&good, &[("origin", "https://evil.example")]),
        (&good, &[("sec-fetch-site", "cross-site")]),
        (&good, &[("sec-fetch-site", "same-site")]),
    ] {
        let response = mine.send(&api, &action, headers, text.clone()).await;
        assert_eq!(response.status, 403, "{text} {headers:?}");
    }
    let mut nobody = Browser::default();
    let response = nobody.send(&api, &action, &[], good.clone()).await;
    assert_eq!(response.status, 403, "without the cookie");
    let same = [
        ("origin", "http://127.0.0.1:8080"),
        ("sec-fetch-site", "same-origin"),
    ];
    let response = mine.send(&api, &action, &same, good).await;
    assert_eq!(response.status, 303, "{}", response.text());
}

#[tokio::test]
async fn signing_in_gives_the_browser_another_cookie() {
    let api = Api::start().await;
    let mut browser = Browser::default();
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    let planted = browser.cookie.clone();
    assert!(planted.starts_with("tidegate="));
    browser.post(&api, (&page, "sign_in"), &ALICE).await;
    assert_ne!(browser.cookie, planted);
    let mut attacker = Browser { cookie: planted };
    let page = attacker.get(&api, &format!("/auth?{QUERY}")).await;
    assert!(
        page.text().contains("name=\"password\""),
        "the old cookie is nobody's"
    );
}

#[tokio::test]
async fn a_wrong_name_and_a_wrong_password_read_the_same() {
    let api = Api::start().await;
    let mut texts = Vec::new();
    for name in ["alice", "nobody"] {
        let mut browser = Browser::default();
        let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
        let fields = [("username", name), ("password", "wrong-password")];
        let response = browser.post(&api, (&page, "sign_in"), &fields).await;
        assert_eq!(response.status, 400);
        let (_, reported) = response.text().split_once("<p class=\"error\"").unwrap();
        let (reported, _) = reported.split_once("</p>").unwrap();
        assert!(
            response
                .text()
                .contains("aria-describedby=\"password-error\"")
        );
        assert!(
            !response.text().contains("wrong-password"),
            "no password comes back"
        );
        texts.push(reported.to_owned());
    }
    assert_eq!(texts[0], texts[1]);
    let mut browser = Browser::default();
    let page = browser.get(&api, &format!("/auth?{QUERY}")).await;
    let fields = [
        ("username", "alice"),
        ("password", "alice1234"),
        ("database", "lonely"),
    ];
    let response = browser.post(&api, (&page, "sign_in"), &fields).await;
    assert_eq!(response.status, 400, "a name counts in its tenant only");
}

#[tokio::test]
async fn what_others_wrote_is_text_and_never_markup() {
    let api = Api::start().await;
    let evil = "<script>alert(1)</script>\"'&";
    let client = NewClient {
        id: Some("evil".to_owned()),
        public: true,
        description: Some(evil.to_owned()),
        ..NewClient::new(
            TenantName::parse("demo").unwrap(),
            evil,
            vec![CALLBACK.to_owned()],
        )
    };
    api.clients.create_client(client).await.unwrap();
    let mut browser = signed_in(&api).await;
    let query = QUERY.replace("client_id=app", "client_id=evil");
    let address = format!("/auth?{query}&x=%3Cscript%3E\"><script>");
    let consent = browser
        .get(&api, &address.replace(['<', '>', '"'], ""))
        .await;
    assert!(
        consent
            .text()
            .contains("&lt;script&gt;alert(1)&lt;/script&gt;")
    );
    let mut stranger = Browser::default();
    let page = stranger.get(&api, &format!("/auth?{query}")).await;
    let name = [("username", "\"><script>x"), ("password", "wrong-password")];
    let wrong = stranger.post(&api, (&page, "sign_in"), &name).await;
    let device = stranger
        .get(&api, "/device?user_code=%22%3E%3Cscript%3Ex")
        .await;
    for page in [&consent, &page, &wrong, &device] {
        assert!(!page.text().contains("<script"), "{}", page.text());
    }
    assert!(wrong.text().contains("value=\"&quot;&gt;&lt;script&gt;x\""));
}

#[tokio::test]
async fn oversized_and_odd_forms_are_refused_as_pages() {
    let api = Api::start().await;
    let mut browser = Browser::default();
    browser.get(&api, "/device").await;
    let large = format!("step=code&user_code={}", "x".repeat(70_000));
    let response = browser.send(&api, "/device", &[], large).await;
    assert_eq!(response.status, 413);
    assert!(response.text().contains("<h1>"));
    let odd = request(Method::POST, "/device").header("content-type", "application/json");
    let response = api.call(odd.body("{}".to_owned()).unwrap()).await;
    assert_eq!(response.status, 415);
    let odd = browser.get(&api, &format!("/auth?{QUERY}&more=%ff")).await;
    assert_eq!(odd.status, 400);
    let text = "parameters in the address are malformed";
    assert!(odd.text().contains(text), "{}", odd.text());
    let style = api.get("/assets/tidegate.css").await;
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
    assert!(!style.header("etag").is_empty());
}
