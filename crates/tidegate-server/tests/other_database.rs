//! Tests that users of another database than the client's get an error and no code.

use serde_json::json;

use crate::fixture::{Api, TestResponse};
use crate::pages::{ALICE, Browser, QUERY};

const OTHER_OWNER: [(&str, &str); 3] = [
    ("username", "lonely"),
    ("password", "lonely1234"),
    ("database", "lonely"),
];

/// The pages that sign users in for a client of the database `demo`.
async fn pages(api: &Api) -> [String; 2] {
    let asked = json!({"client_id": "app"});
    let device = api.post("/api/v4/oauth/device", &asked).await.json();
    let user_code = device["user_code"].as_str().unwrap();
    [
        format!("/auth?{QUERY}"),
        format!("/device?step=confirm&user_code={user_code}"),
    ]
}

fn is_sign_in_page(page: &TestResponse) -> bool {
    page.text().contains("name=\"password\"")
}

#[tokio::test]
async fn signing_in_for_another_database_shows_an_error() {
    let api = Api::start().await;
    for address in pages(&api).await {
        let mut browser = Browser::default();
        let page = browser.get(&api, &address).await;
        let reported = browser.post(&api, (&page, "sign_in"), &OTHER_OWNER).await;
        assert_eq!(reported.status, 400, "{address}");
        let text = "App takes users of the database demo only.";
        assert!(reported.text().contains(text), "{}", reported.text());
        assert!(is_sign_in_page(&reported), "and can try again");
    }
}

#[tokio::test]
async fn a_session_of_another_database_shows_an_error() {
    let api = Api::start().await;
    for address in pages(&api).await {
        let mut browser = Browser::default();
        let page = browser.get(&api, "/account").await;
        let done = browser.post(&api, (&page, "sign_in"), &OTHER_OWNER).await;
        assert_eq!(done.status, 303, "{}", done.text());
        let reported = browser.get(&api, &address).await;
        assert_eq!(reported.status, 200, "{address}");
        let text = "You are signed in as lonely of the database lonely. App takes users of the \
                    database demo only.";
        assert!(reported.text().contains(text), "{}", reported.text());
        assert!(is_sign_in_page(&reported));
        let done = browser.post(&api, (&reported, "sign_in"), &ALICE).await;
        assert_eq!(done.status, 303, "{}", done.text());
        let asked = browser.get(&api, &address).await;
        assert!(asked.text().contains("value=\"allow\""), "{}", asked.text());
    }
}
