//! Tests `/api/v4/clients` (API.md, "Clients"): registering, showing, changing and dropping OAuth
//! clients.

use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::service::{RestResponse, demo};

pub(crate) const URI: &str = "https://app.example/callback";

pub(crate) async fn owner(method: &str, path: &str, body: Value) -> RestResponse {
    demo().rest(Some("demo"), (method, path), &body).await
}

async fn guest_token(client: &str, secret: Option<&str>) -> (u16, String) {
    let mut body = json!({"database": "demo", "client_id": client});
    if let Some(secret) = secret {
        body["client_secret"] = secret.into();
    }
    let path = ("POST", "/api/v4/oauth/guest");
    let response = demo().rest_with(None, path, &body).await;
    let error = response.body["error"].as_str().unwrap_or_default();
    (response.status, error.to_owned())
}

#[tokio::test]
async fn a_client_is_registered_shown_and_dropped() {
    let body = json!({"name": "Shop", "redirect_uri": [URI]});
    let made = owner("POST", "/api/v4/clients", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (id, secret) = (made.body["id"].as_str(), made.body["secret"].as_str());
    let (id, secret) = (id.unwrap(), secret.unwrap());
    let path = format!("/api/v4/clients/{id}");
    assert_eq!(made.location, path);
    assert_eq!(
        made.body.to_string(),
        json!({"_links": {"self": path}, "id": id, "secret": secret}).to_string()
    );
    // The secret has a prefix and 256 bits, and works.
    assert!(secret.starts_with("tgc_") && secret.len() == 47, "{secret}");
    assert_eq!(guest_token(id, Some(secret)).await.0, 201);
    assert_eq!(
        guest_token(id, Some("wrong")).await,
        (401, "invalid_client".to_owned())
    );

    let shown = owner("GET", &format!("{path}/"), Value::Null).await;
    assert_eq!(shown.status, 200);
    // The response has every field with its default, in the order of the contract, and no secret.
    assert_eq!(
        shown.body.to_string(),
        json!({
            "id": id, "name": "Shop", "redirect_uri": [URI], "homepage": null,
            "description": null, "public": false, "confirm": true, "two_factor": false,
            "allow_signup": false, "social_signup": false, "signup_kind": "role",
            "signup_group": null, "grants": shown.body["grants"],
            "service_user": null,
        })
        .to_string()
    );
    for grant in ["password", "refresh_token", "guest"] {
        let grants = shown.body["grants"].as_array().unwrap();
        assert!(grants.contains(&grant.into()), "{grants:?}");
    }

    let dropped = owner("DELETE", &path, Value::Null).await;
    assert_eq!((dropped.status, dropped.body), (204, json!("")));
    let gone = owner("GET", &path, Value::Null).await;
    let message = format!("there is no client {id}");
    assert_eq!(gone.error(), (404, "NOT_FOUND", message.as_str()));
    assert_eq!(
        guest_token(id, Some(secret)).await,
        (401, "invalid_grant".to_owned())
    );
}

#[tokio::test]
async fn several_are_made_shown_changed_and_dropped_at_once() {
    let client = |id: &str, public: bool| json!({"id": id, "name": id, "redirect_uri": [URI], "public": public});
    let body = json!([client("several-a", true), client("several-b", false)]);
    let made = owner("POST", "/api/v4/clients", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.location, "/api/v4/clients/several-a,several-b");
    // A public client has no secret.
    assert_eq!(
        made.body[0].to_string(),
        r#"{"_links":{"self":"/api/v4/clients/several-a"},"id":"several-a"}"#
    );
    assert!(made.body[1]["secret"].is_string());

    let both = "/api/v4/clients/several-a%2Cseveral-b";
    let shown = owner("GET", both, Value::Null).await;
    let ids: Vec<_> = shown
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["id"])
        .collect();
    assert_eq!(json!(ids), json!(["several-a", "several-b"]));
    let all = owner("GET", "/api/v4/clients", Value::Null).await;
    assert!(all.body.as_array().unwrap().len() >= 3, "{all:?}");

    let changed = owner("PATCH", both, json!({"description": "one of two"})).await;
    assert_eq!(changed.status, 303, "{changed:?}");
    assert_eq!(changed.location, "/api/v4/clients/several-a,several-b");
    assert_eq!(
        changed.body.to_string(),
        r#"[{"_links":{"self":"/api/v4/clients/several-a"}},{"_links":{"self":"/api/v4/clients/several-b"}}]"#
    );
    let shown = owner("GET", both, Value::Null).await;
    assert_eq!(shown.body[1]["description"], "one of two");

    // If one of the clients does not exist, the others are not dropped.
    let partly = owner("DELETE", &format!("{both},nowhere"), Value::Null).await;
    assert_eq!(partly.status, 404);
    assert_eq!(owner("GET", both, Value::Null).await.status, 200);
    assert_eq!(owner("DELETE", both, Value::Null).await.status, 204);
    assert_eq!(owner("GET", both, Value::Null).await.status, 404);
}

#[tokio::test]
async fn an_array_of_one_is_answered_by_an_array() {
    let client = json!([{"id": "alone", "name": "Alone", "redirect_uri": [URI]}]);
    let made = owner("POST", "/api/v4/clients", client).await;
    assert_eq!(
        (made.status, &*made.location),
        (201, "/api/v4/clients/alone")
    );
    let one = made.body.as_array().unwrap();
    assert_eq!(one.len(), 1, "{made:?}");
    assert_eq!(one[0]["id"], "alone");
    assert!(one[0]["secret"].is_string(), "{made:?}");
    // A change applies to every client in the path, so an array is refused.
    let refused = owner("PATCH", "/api/v4/clients/alone", json!([{"name": "Other"}])).await;
    let (status, code, _) = refused.error();
    assert_eq!(
        (status, code),
        (400, "INPUT_VALIDATION_ERROR"),
        "{refused:?}"
    );
    let shown = owner("GET", "/api/v4/clients/alone", Value::Null).await;
    assert_eq!(shown.body["name"], "Alone", "one object for one id");
    assert_eq!(
        owner("DELETE", "/api/v4/clients/alone", Value::Null)
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn of_several_all_are_made_or_none() {
    let client = |id: &str, name: &str| json!({"id": id, "name": name, "redirect_uri": [URI]});
    for second in [client("demo-app", "taken"), client("half-b", "")] {
        let body = json!([client("half-a", "first"), second]);
        let refused = owner("POST", "/api/v4/clients", body).await;
        assert!(refused.error().2.starts_with("[1]: "), "{refused:?}");
        let first = owner("GET", "/api/v4/clients/half-a", Value::Null).await;
        assert_eq!(first.status, 404);
    }
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name() {
    let body = json!({
        "id": "kept", "name": "Kept", "redirect_uri": [URI], "homepage": "https://app.example/",
        "description": "an app", "confirm": false, "allow_signup": true, "grants": ["guest"],
    });
    assert_eq!(owner("POST", "/api/v4/clients", body).await.status, 201);
    let path = "/api/v4/clients/kept";
    let before = owner("GET", path, Value::Null).await.body;
    assert_eq!(before["grants"], json!(["guest"]));
    let changed = owner("PATCH", path, json!({"name": "Renamed", "homepage": null})).await;
    assert_eq!((changed.status, changed.location.as_str()), (303, path));
    let mut after = before.clone();
    after["name"] = "Renamed".into();
    after["homepage"] = Value::Null;
    assert_eq!(owner("GET", path, Value::Null).await.body, after);
    for (member, value) in [
        ("redirect_uri", json!(["https://other.example/"])),
        ("description", json!("another")),
        ("confirm", json!(true)),
        ("two_factor", json!(true)),
        ("allow_signup", json!(false)),
        ("social_signup", json!(true)),
        ("grants", json!(["password"])),
    ] {
        let asked = json!({member: value});
        assert_eq!(owner("PATCH", path, asked).await.status, 303, "{member}");
        after[member] = value;
        assert_eq!(
            owner("GET", path, Value::Null).await.body,
            after,
            "{member}"
        );
    }
    owner("DELETE", path, Value::Null).await;
}

#[tokio::test]
async fn a_rotated_secret_and_the_one_before_it_work() {
    let body = json!({"id": "rotated", "name": "Rotated", "redirect_uri": [URI]});
    let made = owner("POST", "/api/v4/clients", body).await;
    let first = made.body["secret"].as_str().unwrap().to_owned();
    let path = "/api/v4/clients/rotated";
    let rotate = || async {
        let rotated = owner("PATCH", path, json!({"rotate_secret": true})).await;
        assert_eq!(rotated.status, 200, "{rotated:?}");
        assert_eq!(rotated.body["id"], "rotated");
        assert_eq!(rotated.body["_links"]["self"], path);
        rotated.body["secret"].as_str().unwrap().to_owned()
    };
    let second = rotate().await;
    assert_ne!(first, second);
    for secret in [&first, &second] {
        assert_eq!(guest_token("rotated", Some(secret)).await.0, 201);
    }
    let third = rotate().await;
    assert_eq!(guest_token("rotated", Some(&third)).await.0, 201);
    assert_eq!(guest_token("rotated", Some(&second)).await.0, 201);
    assert_eq!(guest_token("rotated", Some(&first)).await.0, 401);

    // The client becomes public and confidential again: its old secrets are invalid, and it gets a
    // new one.
    assert_eq!(
        owner("PATCH", path, json!({"public": true})).await.status,
        303
    );
    assert_eq!(guest_token("rotated", None).await.0, 201);
    let refused = owner("PATCH", path, json!({"rotate_secret": true})).await;
    assert_eq!(
        refused.error(),
        (
            400,
            "INPUT_VALIDATION_ERROR",
            "`rotate_secret`: expected a confidential client"
        )
    );
    let again = owner("PATCH", path, json!({"public": false})).await;
    assert_eq!(again.status, 200, "{again:?}");
    let fourth = again.body["secret"].as_str().unwrap();
    assert_eq!(guest_token("rotated", Some(fourth)).await.0, 201);
    assert_eq!(guest_token("rotated", Some(&third)).await.0, 401);
    owner("DELETE", path, Value::Null).await;
}

#[tokio::test]
async fn the_sessions_of_a_dropped_client_end_at_once() {
    let body = json!({"id": "ended", "name": "Ended", "redirect_uri": [URI], "public": true});
    owner("POST", "/api/v4/clients", body).await;
    let grant = json!({
        "grant_type": "password", "username": "alice", "password": "alice1234",
        "database": "demo", "client_id": "ended",
    });
    let path = ("POST", "/api/v4/oauth");
    let tokens = demo().rest_with(None, path, &grant).await.body;
    let token = tokens["access_token"].as_str();
    let ask = json!({"q": "select 1"});
    let sql = ("POST", "/api/v4/sql");
    assert_eq!(demo().rest_with(token, sql, &ask).await.status, 200);
    assert_eq!(
        owner("DELETE", "/api/v4/clients/ended", Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(demo().rest_with(token, sql, &ask).await.status, 401);
}

#[tokio::test]
async fn changes_at_the_same_time_do_not_undo_one_another() {
    let body = json!({"id": "together", "name": "A", "redirect_uri": [URI]});
    assert_eq!(owner("POST", "/api/v4/clients", body).await.status, 201);
    let path = "/api/v4/clients/together";
    for round in 0..5 {
        let text = format!("round {round}");
        let flag = round % 2 == 0;
        let change = |members: Value| owner("PATCH", path, members);
        let (rotated, named, described, confirm, two_factor) = tokio::join!(
            change(json!({"rotate_secret": true})),
            change(json!({"name": text})),
            change(json!({"description": text})),
            change(json!({"confirm": flag})),
            change(json!({"two_factor": flag})),
        );
        assert_eq!(rotated.status, 200, "{rotated:?}");
        for changed in [named, described, confirm, two_factor] {
            assert_eq!(changed.status, 303, "{changed:?}");
        }
        let secret = rotated.body["secret"].as_str();
        assert_eq!(guest_token("together", secret).await.0, 201);
        let shown = owner("GET", path, Value::Null).await.body;
        assert_eq!(
            (&shown["name"], &shown["description"]),
            (&json!(text), &json!(text))
        );
        assert_eq!(
            (&shown["confirm"], &shown["two_factor"]),
            (&json!(flag), &json!(flag))
        );
    }
}

#[tokio::test]
async fn the_settings_name_the_built_in_clients() {
    let operator = operator().await;
    let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    for (flags, known, unknown) in [
        (&[][..], "gc2-cli", "acme"),
        (&["--builtin-client-ids", "acme"][..], "acme", "gc2-cli"),
    ] {
        let client = reqwest::Client::new();
        let node = Node::start_with(&operator, flags, ("http", client)).await;
        for (id, status) in [("tidegate", 200), (known, 200), (unknown, 400)] {
            let query = format!(
                "response_type=code&client_id={id}&code_challenge_method=S256\
                 &code_challenge={challenge}&redirect_uri=http%3A%2F%2F127.0.0.1%3A5657%2Fback"
            );
            let page = node.client.get(format!("{}/auth?{query}", node.url));
            assert_eq!(
                page.send().await.unwrap().status(),
                status,
                "{flags:?} {id}"
            );
        }
    }
}
