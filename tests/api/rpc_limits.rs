//! Tests configured limits on calls, and methods of several tenants (API.md, "Methods").

use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::rpc::call;
use crate::service::{Service, TextResponse, demo_folder};

#[tokio::test]
async fn the_limits_of_a_batch_are_what_the_operator_says() {
    let folder = demo_folder();
    let limits = ["--batch-limit", "2", "--parameter-set-limit", "3"];
    let demo = Service::start(folder.path().to_str().unwrap(), &limits);
    let token = demo.token("demo").await;
    let post = async |path: &str, body: Value| {
        let request = demo.request(reqwest::Method::POST, path);
        TextResponse::of(request.bearer_auth(&token).json(&body)).await
    };
    let method = json!({"method": "l_n", "q": "select :n::int as n"});
    assert_eq!(post("/api/v4/methods", method).await.status, 201);
    let sets = |count| call("l_n", json!(vec![json!({"n": 1}); count]), 1);
    let refused = [
        (json!([sets(1), sets(1), sets(1)]), 2),
        (sets(4), 3),
        // The limit applies to the parameter sets of all calls in a batch together.
        (json!([sets(2), sets(2)]), 3),
    ];
    for path in ["/api/v4/call", "/api/v4/call/dry"] {
        for (message, limit) in &refused {
            let response = post(path, message.clone()).await.json();
            assert_eq!(response["error"]["code"], -32600, "{response}");
            assert_eq!(response["error"]["data"]["limit"], *limit);
            assert_eq!(response["id"], Value::Null);
        }
    }
    let responses = post("/api/v4/call", json!([sets(2), sets(1)])).await.json();
    assert_eq!(
        responses[0]["result"]["data"],
        json!([{"n": 1}, {"n": 1}]),
        "{responses}"
    );
    assert_eq!(responses[1]["result"]["data"], json!([{"n": 1}]));
}

#[tokio::test]
async fn a_name_is_unique_within_its_tenant_only() {
    let operator = operator().await;
    let root = operator.root("postgres").await;
    root.batch_execute("CREATE DATABASE lake").await.unwrap();
    for (arguments, input) in [
        (
            &["tenant", "adopt", "lake", "--password-file", "-"][..],
            "owner-password\n",
        ),
        (
            &[
                "client",
                "create",
                "lake",
                "App",
                "--id",
                "lake-app",
                "--public",
                "--redirect-uri",
                "http://127.0.0.1:5000/callback",
            ],
            "",
        ),
    ] {
        operator.succeeds(arguments, input);
    }
    let node = Node::start(&operator).await;
    for (tenant, client) in [("shop", "app"), ("lake", "lake-app")] {
        let credentials = json!({
            "grant_type": "password", "username": tenant, "password": "owner-password",
            "database": tenant, "client_id": client,
        });
        let (_, tokens) = node.post("/api/v4/oauth", None, credentials).await;
        let token = tokens["access_token"].as_str();
        let method = json!({"method": "where_am_i", "q": "select current_database() as db"});
        let (status, response) = node.post("/api/v4/methods", token, method.clone()).await;
        assert_eq!(status, 201, "{response}");
        let (status, _) = node.post("/api/v4/methods", token, method).await;
        assert_eq!(status, 409);
    }
    for (tenant, client) in [("shop", "app"), ("lake", "lake-app")] {
        let credentials = json!({
            "grant_type": "password", "username": tenant, "password": "owner-password",
            "database": tenant, "client_id": client,
        });
        let (_, tokens) = node.post("/api/v4/oauth", None, credentials).await;
        let message = call("where_am_i", json!({}), 1);
        let (_, response) = node
            .post("/api/v4/call", tokens["access_token"].as_str(), message)
            .await;
        assert_eq!(response["result"]["data"], json!([{"db": tenant}]));
    }
    node.stop();
}
