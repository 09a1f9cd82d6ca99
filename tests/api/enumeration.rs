//! Tests that responses of sign-in and of its pages do not reveal which users exist, neither by
//! their text nor by their time.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::pages::{Browser, CALLBACK, authorization, encoded};
use crate::service::{Service, TextResponse, demo_folder};

/// Users whose sign-in fails: an unknown user, one with a wrong password, and one without a
/// password.
const USERS_WITHOUT_SIGN_IN: [&str; 3] = ["nobody", "alice", "guest"];

/// The number of passwords that the node has hashed or checked.
async fn hashes(service: &Service) -> u64 {
    let metrics = TextResponse::of(service.request(Method::GET, "/metrics")).await;
    let name = "tidegate_password_hashes_total ";
    let line = metrics
        .text
        .lines()
        .find_map(|line| line.strip_prefix(name));
    line.expect("the metric is there").parse().unwrap()
}

async fn at_token_endpoint(service: &Service, user: &str) -> TextResponse {
    let body = json!({
        "grant_type": "password", "username": user, "password": "wrong-password",
        "database": "demo", "client_id": "demo-app",
    });
    TextResponse::of(service.request(Method::POST, "/api/v4/oauth").json(&body)).await
}

/// The visible text of a page, without the hidden fields of its form.
fn readable(page: &str, user: &str) -> String {
    page.replace(user, "USER")
}

#[tokio::test]
async fn a_failed_sign_in_has_the_same_cost_and_text_for_all_users() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &[]);
    let mut responses = Vec::new();
    for user in USERS_WITHOUT_SIGN_IN {
        let before = hashes(&service).await;
        let response = at_token_endpoint(&service, user).await;
        assert_eq!(hashes(&service).await - before, 1, "{user} at the endpoint");
        responses.push((response.status, response.text));
    }
    assert!(
        responses.iter().all(|response| *response == responses[0]),
        "{responses:?}"
    );

    let mut browser = Browser::new(&service);
    for path in [authorization("demo-app"), "/account".to_owned()] {
        let page = browser.get(&path).await;
        let mut responses = Vec::new();
        for user in USERS_WITHOUT_SIGN_IN {
            let before = hashes(&service).await;
            let fields = [
                ("username", user),
                ("password", "wrong-password"),
                ("database", "demo"),
            ];
            let refused = browser.submit(&page, "sign_in", &fields).await;
            assert_eq!(hashes(&service).await - before, 1, "{user} at {path}");
            responses.push((refused.status, readable(&refused.text, user)));
        }
        assert_eq!(responses[0].0, 400);
        assert!(
            responses.iter().all(|response| *response == responses[0]),
            "{responses:?}"
        );
    }
    // The times are compared too. A response without a hash would be a hundred times faster.
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..5 {
        for (user, times) in USERS_WITHOUT_SIGN_IN.iter().zip(&mut times) {
            let started = Instant::now();
            at_token_endpoint(&service, user).await;
            times.push(started.elapsed());
        }
    }
    let medians = times.map(median);
    let (least, most) = (medians.iter().min().unwrap(), medians.iter().max().unwrap());
    assert!(*most < *least * 3, "{medians:?}");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test]
async fn a_taken_name_costs_as_much_as_a_free_one() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &[]);
    let owner = service.token("demo").await;
    let open = json!({
        "id": "open", "name": "Open", "redirect_uri": [CALLBACK], "public": true,
        "allow_signup": true,
    });
    let made = service.rest_with(Some(&owner), ("POST", "/api/v4/clients"), &open);
    assert_eq!(made.await.status, 201);
    let path = format!(
        "/signup/?client_id=open&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let mut browser = Browser::new(&service);
    let page = browser.get(&path).await;
    for (name, status) in [("alice", 409), ("newcomer", 303)] {
        let before = hashes(&service).await;
        let fields = [
            ("username", name),
            ("email", "n@example.org"),
            ("password", "long-enough"),
        ];
        let response = browser.submit(&page, "sign_up", &fields).await;
        assert_eq!(response.status, status, "{name}: {}", response.text);
        assert_eq!(hashes(&service).await - before, 1, "{name}");
    }
    // Without SMTP, the page for forgotten passwords has no field for a name.
    let page = browser.get("/reset").await;
    assert_eq!(page.status, 200);
    assert!(!page.text.contains("name=\"username\""), "{}", page.text);
}
