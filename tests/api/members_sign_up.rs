//! Sign-up of members through the pages (docs/API.md, "Clients", `signup_kind` and `signup_group`).

use serde_json::{Value, json};

use crate::flows::redemption;
use crate::members::GRAPHQL;
use crate::pages::{Browser, CALLBACK, authorization, encoded};
use crate::service::{RestResponse, Service, demo_folder, eventually};
use crate::socket_client::{Socket, open_at};
use crate::users::owner;

const CLIENTS: &str = "/api/v4/clients";
/// How many people sign up.
const PEOPLE: usize = 200;

/// A table for the group of those who sign up.
const POSTS_TABLE: [&str; 4] = [
    "create table letters (id int generated always as identity primary key, \
        author text not null default tidegate.user_id(), title text)",
    "alter table letters enable row level security",
    "create policy own on letters using (author = (select tidegate.user_id()))",
    "grant select, insert on letters to \"demo/group/people\"",
];

fn open_client() -> Value {
    json!({"id": "msign", "name": "Open", "public": true, "allow_signup": true, "confirm": false,
        "redirect_uri": [CALLBACK], "signup_kind": "member", "signup_group": "people"})
}

/// Signs a new person up and returns its token.
async fn sign_up(service: &Service, number: usize) -> String {
    let address = format!("10.0.{}.{}", number / 200, number % 200);
    let mut browser = Browser::behind_proxy(service, &address);
    let page = format!(
        "/signup/?client_id=msign&parentdb=demo&redirect_uri={}",
        encoded(CALLBACK)
    );
    let page = browser.get(&page).await;
    let name = format!("p{number}");
    let fields = [
        ("username", name.as_str()),
        ("email", "p@example.org"),
        ("password", "long-enough"),
    ];
    let done = browser.submit(&page, "sign_up", &fields).await;
    assert_eq!(done.location, CALLBACK, "{}", done.text);
    let signed_in = browser.get(&authorization("msign")).await;
    let body = redemption("msign", &signed_in.parameter("code"));
    let path = ("POST", "/api/v4/oauth");
    let tokens = service.rest_with(None, path, &body).await;
    let token = tokens.body["access_token"].as_str();
    token.unwrap_or_else(|| panic!("{tokens:?}")).to_owned()
}

async fn graphql(service: &Service, token: &str, query: &str) -> Value {
    let body = json!({"query": query});
    let response = service
        .rest_with(Some(token), ("POST", GRAPHQL), &body)
        .await;
    assert!(response.body["data"].is_object(), "{query}: {response:?}");
    response.body["data"].clone()
}

async fn follow(service: &Service, token: &str) -> Socket {
    let mut socket = open_at(&service.url, &format!("/?token={token}"), &[])
        .await
        .unwrap();
    let query = "subscription { LettersMessageAdded { title } }";
    socket.subscribe("1", query).await;
    socket
}

#[tokio::test]
async fn each_person_who_signs_up_sees_only_its_own_rows() {
    let folder = demo_folder();
    let settings = [("TIDEGATE_TRUSTED_PROXIES", "127.0.0.1")];
    let path = folder.path().to_str().unwrap();
    let service = Service::start_with(path, &[], &settings);
    let made = service
        .rest(Some("demo"), ("POST", CLIENTS), &open_client())
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let mut tokens = vec![sign_up(&service, 0).await];
    for q in POSTS_TABLE {
        service.rows("demo", q, json!(null)).await;
    }
    for number in 1..PEOPLE {
        tokens.push(sign_up(&service, number).await);
    }
    eventually("the table is in the schema", async || {
        let known = "{ __type(name: \"Letters\") { name } }";
        graphql(&service, &tokens[0], known).await["__type"].is_object()
    })
    .await;
    let mut sockets = Vec::new();
    for token in &tokens {
        sockets.push(follow(&service, token).await);
    }
    for (number, token) in tokens.iter().enumerate() {
        let insert =
            format!("mutation {{ insertLetters(data: {{title: \"{number}\"}}) {{ id }} }}");
        graphql(&service, token, &insert).await;
    }
    for (number, token) in tokens.iter().enumerate() {
        let rows = graphql(&service, token, "{ getLetters { title } }").await;
        assert_eq!(rows["getLetters"], json!([{"title": number.to_string()}]));
        let event = sockets[number].receive().await;
        let added = &event["data"]["LettersMessageAdded"];
        assert_eq!(added, &json!([{"title": number.to_string()}]), "{event}");
    }
    for socket in &mut sockets {
        assert!(socket.is_silent().await);
    }
    let admin = service.admin().await;
    let roles = "select count(*) from pg_roles where rolname ~ '^demo/p[0-9]'";
    assert_eq!(
        admin.query_one(roles, &[]).await.unwrap().get::<_, i64>(0),
        0
    );
}

#[tokio::test]
async fn a_client_says_what_a_sign_up_makes() {
    let client = |more: Value| {
        let mut client = open_client();
        client["id"] = json!("msign-two");
        let more = more.as_object().unwrap().clone();
        client.as_object_mut().unwrap().extend(more);
        client
    };
    for (more, text) in [
        (json!({"signup_kind": "robot"}), "`signup_kind`"),
        (json!({"signup_group": null}), "`signup_group`"),
        (json!({"signup_group": "a/b"}), "`signup_group`"),
        (json!({"signup_group": ""}), "`signup_group`"),
        (
            json!({"signup_kind": "role", "signup_group": "a,b"}),
            "`signup_group`",
        ),
    ] {
        let response: RestResponse = owner("POST", CLIENTS, client(more.clone())).await;
        let (status, _, message) = response.error();
        assert!(status == 400 && message.contains(text), "{more}: {message}");
    }
    assert_eq!(owner("POST", CLIENTS, client(json!({}))).await.status, 201);
    let path = format!("{CLIENTS}/msign-two");
    let shown = owner("GET", &path, Value::Null).await.body;
    assert_eq!(
        (&shown["signup_kind"], &shown["signup_group"]),
        (&json!("member"), &json!("people"))
    );
    let refused = owner("PATCH", &path, json!({"signup_group": null})).await;
    assert_eq!(refused.error().0, 400, "{refused:?}");
    let change = json!({"signup_kind": "role", "signup_group": null});
    assert_eq!(owner("PATCH", &path, change).await.status, 303);
    let shown = owner("GET", &path, Value::Null).await.body;
    assert_eq!(
        (&shown["signup_kind"], &shown["signup_group"]),
        (&json!("role"), &Value::Null)
    );
}
