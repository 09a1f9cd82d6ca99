//! Tests of methods and their calls over HTTP: statuses, limits, an unavailable store.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};
use tidegate_methods::store::{
    MayRemove, MethodStore, NewMethod, Revise, StoreResult, WriteOutcome,
};
use tidegate_methods::{MethodName, Record, Registry, Signature, StoreError, Versioned};
use tidegate_server::Limits;
use tidegate_sql::DatabaseName;

use crate::executor::ExecutorCall;
use crate::fixture::{Api, TestResponse, request};

const METHODS: &str = "/api/v4/methods";

async fn send(api: &Api, method: Method, path: &str, body: Value) -> TestResponse {
    let request = request(method, path)
        .header(
            "authorization",
            format!("Bearer {}", api.token("demo").await),
        )
        .header("content-type", "application/json");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    api.call(request.body(body).unwrap()).await
}

async fn call(api: &Api, message: Value) -> TestResponse {
    send(api, Method::POST, "/api/v4/call", message).await
}

fn calling(method: &str, id: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "id": id})
}

async fn define(api: &Api, methods: &[(&str, &str)]) {
    let definition = |(method, q): &(&str, &str)| json!({"method": method, "q": q});
    let definitions: Vec<_> = methods.iter().map(definition).collect();
    let response = send(api, Method::POST, METHODS, json!(definitions)).await;
    assert_eq!(response.status, 201, "{}", response.text());
}

#[tokio::test]
async fn every_verb_has_the_status_of_the_conventions() {
    let api = Api::start().await;
    define(&api, &[("a", "select rows 1 1"), ("b", "insert x")]).await;
    for (method, path, body, status) in [
        (Method::GET, METHODS, Value::Null, 200),
        (Method::HEAD, METHODS, Value::Null, 200),
        (Method::GET, "/api/v4/methods/a,b", Value::Null, 200),
        (Method::GET, "/api/v4/methods/z", Value::Null, 404),
        (
            Method::PATCH,
            "/api/v4/methods/a",
            json!({"method": "c"}),
            303,
        ),
        (
            Method::PATCH,
            "/api/v4/methods/c",
            json!({"method": "b"}),
            409,
        ),
        (Method::PATCH, "/api/v4/methods/c", json!({"x": 1}), 400),
        (Method::DELETE, "/api/v4/methods/a", Value::Null, 404),
        (Method::DELETE, "/api/v4/methods/b", Value::Null, 204),
        (
            Method::POST,
            METHODS,
            json!({"method": "c", "q": "select 1"}),
            409,
        ),
        (
            Method::POST,
            METHODS,
            json!({"method": "d", "q": "commit"}),
            403,
        ),
        (
            Method::POST,
            "/api/v4/sql",
            json!({"method": "d", "q": "select 1"}),
            201,
        ),
        (Method::POST, "/api/v4/call", calling("c", 1), 200),
        (
            Method::POST,
            "/api/v4/rpc",
            json!({"jsonrpc": "2.0", "method": "c"}),
            204,
        ),
        (Method::POST, "/api/v4/call/dry", calling("c", 1), 200),
        (Method::GET, "/api/v4/interfaces", Value::Null, 200),
        (Method::GET, "/api/v4/openrpc.json", Value::Null, 200),
    ] {
        let response = send(&api, method.clone(), path, body.clone()).await;
        assert_eq!(
            response.status,
            status,
            "{method} {path} {body}: {}",
            response.text()
        );
    }
}

#[tokio::test]
async fn a_batch_that_fails_after_much_output_answers_the_failure_alone() {
    let api = Api::start().await;
    define(
        &api,
        &[
            ("many", "select rows 1000 1000"),
            ("bad", "select fail 3 22012 5"),
        ],
    )
    .await;
    let batch = json!([calling("many", 1), calling("bad", 2)]);
    let response = call(&api, batch).await;
    let responses = response.json();
    assert_eq!(responses[0]["error"]["data"]["rolledBack"], true);
    assert_eq!(responses[1]["error"]["data"]["sqlstate"], "22012");
    assert!(response.body.len() < 1000, "{}", response.text());
    assert_eq!(api.executor.calls().last(), Some(&ExecutorCall::Rollback));
    let whole = call(&api, json!([calling("many", 1), calling("many", 2)])).await;
    assert_eq!(
        whole.json()[1]["result"]["data"].as_array().unwrap().len(),
        1000
    );
}

#[tokio::test]
async fn limits_are_those_of_the_settings() {
    let limits = Limits {
        batch: 2,
        parameter_sets: 3,
        response: 10_000,
        ..Limits::default()
    };
    let api = Api::limited(limits).await;
    define(
        &api,
        &[("big", "select rows 100 1000"), ("a", "select rows 1 1")],
    )
    .await;
    let three = json!([calling("a", 1), calling("a", 2), calling("a", 3)]);
    let refused = call(&api, three).await.json();
    assert_eq!(refused["error"]["data"]["limit"], 2);
    let sets = json!({"jsonrpc": "2.0", "method": "a", "params": [{}, {}, {}, {}], "id": 1});
    assert_eq!(call(&api, sets).await.json()["error"]["data"]["limit"], 3);
    let big = call(&api, calling("big", 1)).await;
    assert_eq!(
        (big.status.as_u16(), &big.json()["error"]["code"]),
        (200, &json!(-32603))
    );
    let definition = |n: u32| json!({"method": format!("m{n}"), "q": "select 1"});
    let many = json!([definition(1), definition(2), definition(3)]);
    assert_eq!(send(&api, Method::POST, METHODS, many).await.status, 400);
}

#[tokio::test]
async fn a_store_that_is_away_is_said_in_the_form_of_each_protocol() {
    let registry = Arc::new(Registry::new(Arc::new(UnavailableStore)));
    let api = Api::with(|builder| builder.methods(registry)).await;
    let list = send(&api, Method::GET, METHODS, Value::Null).await;
    assert_eq!(list.error(), (503, "DATABASE_UNAVAILABLE".to_owned()));
    assert_eq!(list.header("retry-after"), "1");
    let response = call(&api, calling("a", 1)).await;
    assert_eq!(response.status, 200);
    let error = &response.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["retryable"]),
        (&json!(-32603), &json!(true))
    );
}

/// A store of methods that is unavailable.
struct UnavailableStore;

fn unavailable<T>() -> StoreResult<T> {
    Err(StoreError::Unavailable("away".into()))
}

#[async_trait]
impl MethodStore for UnavailableStore {
    async fn get(&self, _: &DatabaseName, _: &[MethodName]) -> StoreResult<Vec<Record>> {
        unavailable()
    }

    async fn list(&self, _: &DatabaseName) -> StoreResult<Vec<Record>> {
        unavailable()
    }

    async fn insert(&self, _: &DatabaseName, _: &[NewMethod]) -> StoreResult<WriteOutcome> {
        unavailable()
    }

    async fn update(
        &self,
        _: &DatabaseName,
        _: &[MethodName],
        _: &Revise<'_>,
    ) -> StoreResult<WriteOutcome> {
        unavailable()
    }

    async fn remove(
        &self,
        _: &DatabaseName,
        _: &[MethodName],
        _: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome> {
        unavailable()
    }

    async fn put_signature(
        &self,
        _: &DatabaseName,
        _: &Versioned,
        _: &Signature,
    ) -> StoreResult<bool> {
        unavailable()
    }

    async fn remove_tenant(&self, _: &DatabaseName) -> StoreResult<()> {
        unavailable()
    }
}
