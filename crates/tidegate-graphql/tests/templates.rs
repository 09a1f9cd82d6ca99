//! Tests that requests which share a plan send the same statements as they would alone.

use std::sync::Mutex;

use serde_json::value::RawValue;
use tidegate_graphql::{Api, Context};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Executor, Mode, Pipeline,
    PipelineError, Principal, QueryOptions, Result, RowSink, Transaction,
};
use tidegate_values::{Column, Type, WireFormat};

use crate::fixture::api;

/// An executor that records the statements that are sent, and returns no rows.
#[derive(Default)]
struct StatementRecorder {
    sent: Mutex<Vec<String>>,
    /// The memory addresses of the statements' texts, which are equal if a text is shared.
    texts: Mutex<Vec<usize>>,
}

impl StatementRecorder {
    fn result(&self, bound: &BoundStatement, sink: &mut dyn RowSink) -> Result<Completion> {
        let text = bound.statement.text();
        self.texts.lock().unwrap().push(text.as_ptr().addr());
        let sent = format!("{text} {:?} {:?}", bound.sets, bound.places);
        self.sent.lock().unwrap().push(sent);
        let column = Column {
            name: "column".to_owned(),
            r#type: Type::TEXT,
            format: WireFormat::Binary,
            origin: None,
        };
        sink.columns(&vec![column; 40])?;
        Ok(Completion {
            affected_rows: None,
        })
    }
}

impl Executor for StatementRecorder {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        bound: &'a BoundStatement,
        _: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async { self.result(bound, sink) })
    }

    fn pipeline<'a>(
        &'a self,
        _: &'a Principal,
        pipeline: Pipeline<'a>,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        Box::pin(async move {
            let steps = pipeline.steps.into_iter();
            let ran = steps.map(|step| self.result(step.statement, step.sink));
            Ok(ran.collect::<Result<_>>()?)
        })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }

    fn describe<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }
}

/// The statements that a request sends, its response, and the addresses of the texts.
async fn ask(api: &Api, document: &str, variables: &str) -> (Vec<String>, String, Vec<usize>) {
    let notes = StatementRecorder::default();
    let prepared = api.prepare(document, None).expect(document);
    let variables = RawValue::from_string(variables.to_owned()).unwrap();
    let context = Context {
        executor: &notes,
        principal: &Principal::Control,
        anonymous: false,
        options: QueryOptions::default(),
        response_budget: u64::MAX,
    };
    let response = api.execute(&prepared, Some(&variables), context).await;
    let body = response.unwrap().body.into_bytes().unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let sent = notes.sent.into_inner().unwrap();
    (sent, body, notes.texts.into_inner().unwrap())
}

/// Documents that use the variables `a`, `b` and `c` wherever a variable is allowed.
const DOCUMENTS: &[&str] = &[
    "query($a: ID) { getArtists(id: $a) { id name } }",
    "query($a: ID, $b: ID) { x: getArtists(id: $a) { id } y: getAlbums(id: $b) { title } z: getArtists(id: $a) { name } }",
    "query($a: JSON, $b: JSON) { getArtists(where: {id: {gt: $a}, name: {like: $b}}) { id } }",
    "query($a: JSON, $b: JSON) { getArtists(where: {or: [{name: $a}, {not: {name: {startsWith: $b}}}], born: {lt: \"2000-01-01\"}}) { id } }",
    "query($a: JSON, $b: [ID]) { getArtists(where: {id: {in: $a}}) { id albums(where: {id: {nin: $b}}) { id } } }",
    "query($a: JSON, $b: JSON) { getAlbums(where: {id: {in: [$a, 7]}, price: {eq: $b}, count: 5}) { id artists { name } } }",
    "query($a: JSON, $b: JSON) { getArtists(where: {name: {isNull: $a}, plays: {neq: $b}}) { id } }",
    "query($a: JSON, $b: JSON, $c: JSON) { getArtists(where: {tags: $a, active: {contains: $b}, extra: $c}) { id } }",
    "query($a: JSON, $b: JSON, $c: JSON) { getArtists(where: {mood: $a, rating: {lte: $b}, born: {gte: $c}}) { id } }",
    "query($a: JSON) { getArtists(where: $a, limit: 5) { id } }",
    "query($a: Int, $b: Int) { getArtists(limit: $a, offset: $b) { id albums(limit: $b, offset: 2) { id } } }",
    "query($a: Int = 3, $b: JSON = \"x\") { getArtists(where: {name: $b}, limit: $a) { id albums(where: {title: $b, id: $a}) { id } } }",
    "query($a: Boolean = true, $b: Boolean = false) { getArtists { id name @include(if: $a) albums @skip(if: $b) { id } } }",
    "query($a: JSON, $b: JSON) { getArtists(orderBy: {name: $a}, where: {id: $b}) { id } }",
    "query($a: JSON, $b: ID) { x: getArtists(where: {albums: {title: {ilike: $a}}}) { ...F } y: getArtists(id: $b) { ...F } } \
     fragment F on Artists { id albums(where: {price: {gt: $a}}) { id } }",
    "query($a: JSON, $b: ID) { getAlbumsAggregate(where: {id: $a}) { count } getAlbums(id: $b) { id } t: __type(name: \"Date\") { name } }",
    "query($a: ID, $b: JSON) { getArtists(id: $a, where: {name: $b}) { __typename } t: __typename }",
    "query($a: JSON, $b: JSON) { getParts(where: {a: $a, b: $b}) { twice } }",
    "{ getArtists(id: 1) { id albums(limit: 3) { id } } }",
];

const VALUES: &[&str] = &[
    "null",
    "1",
    "2",
    "70",
    "101",
    "127",
    "-5",
    "1.5",
    "true",
    "false",
    "\"\"",
    "\"1\"",
    "\"a%_\\\\\"",
    "\"asc\"",
    "\"desc_nulls_last\"",
    "\"2001-02-03\"",
    "\"[1,3)\"",
    "\"ok\"",
    "[]",
    "[1]",
    "[3, 4]",
    "[\"x\", null]",
    "{}",
    "{\"gt\": 1}",
    "{\"id\": 3}",
    "{\"lower\": 1, \"upper\": 5}",
];

/// Generates random numbers (Knuth, MMIX).
fn next(seed: &mut u64, below: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap() % below
}

#[tokio::test]
async fn what_is_sent_is_the_same_with_and_without_templates() {
    let mut seed = 17;
    for document in DOCUMENTS {
        let shared = api();
        // There are only a few different values, so that equal structures occur.
        for _ in 0..12 {
            let few: Vec<_> = (0..3)
                .map(|_| VALUES[next(&mut seed, VALUES.len())])
                .collect();
            for _ in 0..12 {
                let mut members = Vec::new();
                for name in ["a", "b", "c"] {
                    if next(&mut seed, 8) > 0 {
                        members.push(format!("\"{name}\": {}", few[next(&mut seed, few.len())]));
                    }
                }
                let variables = format!("{{{}}}", members.join(", "));
                let (sent, body, _) = ask(&shared, document, &variables).await;
                let (alone, expected, _) = ask(&api(), document, &variables).await;
                assert_eq!(sent, alone, "{document} {variables}");
                assert_eq!(body, expected, "{document} {variables}");
            }
        }
    }
}

/// Requests share a statement if their values are of the same kind. A value of another kind, null,
/// another direction of the order, and another round limit need a statement of their own.
#[tokio::test]
async fn values_share_a_statement_and_shapes_do_not() {
    let by_key = "query($a: ID) { getArtists(id: $a) { id } }";
    let page = "query($a: JSON, $b: Int) { getArtists(where: {id: {gt: $a}}, limit: $b) { id } }";
    let list = "query($a: [ID!]) { getArtists(where: {id: {in: $a}}) { id } }";
    let order = "query($a: JSON) { getArtists(orderBy: {id: $a}) { id } }";
    let shown = "query($a: Boolean!) { getArtists { id name @include(if: $a) } }";
    for (document, first, second, same) in [
        (by_key, r#"{"a": 1}"#, r#"{"a": 2}"#, true),
        (by_key, r#"{"a": 1}"#, r#"{"a": "2"}"#, false),
        (by_key, r#"{"a": 1}"#, r#"{"a": null}"#, false),
        (by_key, r#"{"a": 1}"#, "{}", false),
        (page, r#"{"a": 1, "b": 9}"#, r#"{"a": 5, "b": 9}"#, true),
        (page, r#"{"a": 1, "b": 9}"#, r#"{"a": 5, "b": 10}"#, false),
        (page, r#"{"a": 1, "b": 101}"#, r#"{"a": 5, "b": 128}"#, true),
        (
            page,
            r#"{"a": 1, "b": 101}"#,
            r#"{"a": 5, "b": 129}"#,
            false,
        ),
        (list, r#"{"a": [1]}"#, r#"{"a": [2, 3]}"#, true),
        (list, r#"{"a": [1]}"#, r#"{"a": []}"#, false),
        (order, r#"{"a": "asc"}"#, r#"{"a": "asc"}"#, true),
        (order, r#"{"a": "asc"}"#, r#"{"a": "desc"}"#, false),
        (shown, r#"{"a": true}"#, r#"{"a": true}"#, true),
        (shown, r#"{"a": true}"#, r#"{"a": false}"#, false),
    ] {
        let api = api();
        // A template is made for the second request.
        for _ in 0..2 {
            ask(&api, document, first).await;
        }
        let (_, _, known) = ask(&api, document, first).await;
        let (_, _, again) = ask(&api, document, second).await;
        assert_eq!(known == again, same, "{document} {first} {second}");
    }
}
