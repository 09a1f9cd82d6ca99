//! Tests of which values variables accept (GraphQL, section 6.1.2).

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_graphql::Context;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Principal, QueryOptions,
    Result, RowSink, Transaction,
};

use crate::fixture::api;

/// An executor that is unavailable. If a request reaches it, all values were coerced.
pub(crate) struct UnavailableExecutor;

impl Executor for UnavailableExecutor {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
        _: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { Err(tidegate_sql::Error::NoDatabase) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async { Err(tidegate_sql::Error::NoDatabase) })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Err(tidegate_sql::Error::NoDatabase) })
    }
}

/// The message of the error, and whether the response has `data`; `None` if a statement was sent.
async fn refusal(document: &str, variables: &str) -> Option<(String, bool)> {
    let api = api();
    let prepared = api.prepare(document, None).expect(document);
    let variables = RawValue::from_string(variables.to_owned()).unwrap();
    let context = Context {
        executor: &UnavailableExecutor,
        principal: &Principal::Control,
        anonymous: false,
        options: QueryOptions::default(),
        response_budget: u64::MAX,
    };
    let response = api
        .execute(&prepared, Some(&variables), context)
        .await
        .ok()?;
    let body: Value = serde_json::from_slice(&response.body.into_bytes().unwrap()).unwrap();
    let error = &body["errors"][0];
    assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{body}");
    Some((
        error["message"].as_str().unwrap().to_owned(),
        body.get("data").is_some(),
    ))
}

#[tokio::test]
async fn values_fit_their_types_or_are_refused_before_anything_runs() {
    let cases = [
        (
            "Int",
            "limit: $v",
            &["5", "5.0", "5e0", "null"][..],
            &["1.5", "\"5\"", "2147483648", "true", "[1]"][..],
        ),
        ("Int!", "limit: $v", &["5"], &["null"]),
        ("Int = 3", "limit: $v", &["4"], &["\"x\""]),
        (
            "ID",
            "id: $v",
            &["5", "\"5\"", "null"],
            &["1.5", "true", "{}"],
        ),
        ("JSON", "where: $v", &["{}", "{\"id\":1}", "null"], &[]),
        (
            "String",
            "where: {name: $v}",
            &["\"x\"", "null"],
            &["1", "{}"],
        ),
        (
            "Boolean",
            "where: {and: [{name: \"x\"}, {id: {isNull: $v}}]}",
            &["true"],
            &["1", "\"true\""],
        ),
        ("Float", "where: {rating: $v}", &["1", "1.5"], &["\"1\""]),
        ("Date", "where: {born: $v}", &["\"2024-01-01\""], &["1"]),
        (
            "[Int!]",
            "where: {id: {in: $v}}",
            &["[1,2]", "1"],
            &["[1,null]", "[1.5]", "\"x\""],
        ),
    ];
    for (kind, argument, fitting, wrong) in cases {
        let document = format!("query($v: {kind}) {{ getArtists({argument}) {{ id }} }}");
        for value in fitting {
            let variables = format!("{{\"v\":{value}}}");
            assert_eq!(
                refusal(&document, &variables).await,
                None,
                "{document} {value}"
            );
        }
        for value in wrong {
            let variables = format!("{{\"v\":{value}}}");
            let (message, has_data) = refusal(&document, &variables).await.expect(value);
            assert!(message.starts_with("Variable `$v` of type `"), "{message}");
            assert!(!has_data, "{document} {value}");
        }
    }
}

#[tokio::test]
async fn a_value_is_missing_where_one_must_be() {
    let needed = "query($v: Int!) { getArtists(limit: $v) { id } }";
    assert!(refusal(needed, "{}").await.is_some());
    for free in [
        "query($v: Int! = 3) { getArtists(limit: $v) { id } }",
        "query($v: Int) { getArtists(limit: $v) { id } }",
        "query($v: JSON) { getArtists(where: $v) { id } }",
        "mutation($v: String) { insertArtists(data: {name: \"x\", mood: $v, tags: []}) { id } }",
    ] {
        assert_eq!(refusal(free, r#"{"other": 1}"#).await, None, "{free}");
    }
    for hidden in [
        "query($v: Int) { getArtists(where: {id: $v}) { id } }",
        "mutation($v: JSON) { deleteArtists(where: $v) { id } }",
        "mutation($v: ID) { deleteArtists(id: $v, where: {name: \"x\"}) { id } }",
    ] {
        let (_, has_data) = refusal(hidden, "{}").await.expect(hidden);
        assert!(has_data, "{hidden}");
    }
}
