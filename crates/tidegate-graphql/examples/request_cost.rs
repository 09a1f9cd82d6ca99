//! Measures the CPU time of a request, without a database and without HTTP: the rows are given as
//! PostgreSQL would send them. The time is that of the thread, so other load does not matter (Linux
//! only).
//!
//! `cargo run --release -p tidegate-graphql --example request_cost`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example that prints"
)]

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Context, Limits};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Error, Executor, Login, Mode,
    Pipeline, PipelineError, Principal, QueryOptions, Result, RoleName, RoleUse, RowSink,
    Transaction,
};
use tidegate_values::{Column, RawRow, Type, WireFormat};

const SCHEMA: &str = r#"{"name": "public", "relations": [
    {"name": "albums", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "artist_id", "type": "int4"},
                 {"name": "title", "type": "text"}],
     "constraints": [{"name": "albums_pkey", "kind": "primary", "columns": ["id"]},
                     {"name": "albums_artist", "kind": "foreign", "columns": ["artist_id"],
                      "references": {"relation": "artists", "columns": ["id"]}}]},
    {"name": "artists", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"}],
     "constraints": [{"name": "artists_pkey", "kind": "primary", "columns": ["id"]}]},
    {"name": "tracks", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "album_id", "type": "int4"},
                 {"name": "title", "type": "text"}, {"name": "seconds", "type": "int4"}],
     "constraints": [{"name": "tracks_pkey", "kind": "primary", "columns": ["id"]},
                     {"name": "tracks_album", "kind": "foreign", "columns": ["album_id"],
                      "references": {"relation": "albums", "columns": ["id"]}}]},
    {"name": "bench", "kind": "table", "rights": "siud",
     "columns": [{"name": "id", "type": "int4", "not_null": true}, {"name": "name", "type": "text"},
                 {"name": "price", "type": "numeric"}, {"name": "created_at", "type": "timestamptz"}],
     "constraints": [{"name": "bench_pkey", "kind": "primary", "columns": ["id"]}]}]}"#;

const BY_KEY: &str = "query ($id: ID!) {\n  getBench(id: $id) { id name price created_at }\n}";
const FIVE_ROOTS: &str = "query ($id: ID!) {\n  a: getBench(id: $id) { id name price created_at }\n  \
    b: getBench(id: $id) { id name price created_at }\n  c: getBench(id: $id) { id name price created_at }\n  \
    d: getBench(id: $id) { id name price created_at }\n  e: getBench(id: $id) { id name price created_at }\n}";
const PAGE: &str = "query ($first: Int) {\n  getBench(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 25) \
    { id name price created_at }\n}";
const LIST: &str = "query ($id: ID!) {\n  getArtists(id: $id) { id name albums { id title } }\n}";
const TO_ONE: &str = "query ($first: Int) {\n  getAlbums(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 25) \
    { id title artists { id name } }\n}";
const LIMITED: &str = "query ($id: ID!) {\n  getArtists(id: $id) { id name \
    albums(orderBy: {title: \"desc\"}, limit: 10) { id title } }\n}";
const LEVELS: &str = "query ($id: ID!) {\n  getArtists(id: $id) { id name albums(limit: 3) \
    { id title tracks(where: {seconds: {lt: 300}}, limit: 3) { id title seconds } } }\n}";
const NESTED: &str = "query ($first: Int) {\n  getArtists(where: {id: {gt: $first}}, orderBy: {id: \"asc\"}, limit: 20) {\n    \
    id\n    name\n    albums { id title tracks { id title seconds } }\n  }\n}";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    roots().await;
    lists().await;
}

/// Root fields only.
async fn roots() {
    let flat = || {
        let types = [Type::INT4, Type::TEXT, Type::NUMERIC, Type::TIMESTAMPTZ];
        columns(&types)
    };
    let all = [0, 1, 2, 3];
    let one = Rows::new(flat(), &[(1, 1, &all[..])]);
    let five = [
        Type::INT4,
        Type::INT4,
        Type::TEXT,
        Type::NUMERIC,
        Type::TIMESTAMPTZ,
    ];
    let five = Rows::new(columns(&five), &[(1, 1, &[0, 1, 2, 3, 4][..]); 5]);
    let page = Rows::new(flat(), &[(25, 1, &all[..])]);
    measure("by key", 100_000, BY_KEY, r#"{"id":7}"#, &one).await;
    measure(
        "five roots by key",
        20_000,
        FIVE_ROOTS,
        r#"{"id":7}"#,
        &five,
    )
    .await;
    measure("25 rows", 20_000, PAGE, r#"{"first":7}"#, &page).await;
}

/// Root fields with lists and rows below them.
async fn lists() {
    let first = [0, 1, 2, 3];
    let shared = [Type::INT4, Type::INT4, Type::TEXT, Type::INT4, Type::TEXT];
    let deeper = [&shared[..], &[Type::INT4]].concat();
    let list = Rows::new(
        columns(&shared),
        &[(1, 1, &first[..]), (10, 10, &[0, 1, 3, 4])],
    );
    let three = Rows::new(
        columns(&deeper),
        &[
            (1, 1, &first[..]),
            (3, 3, &[0, 1, 3, 4, 5]),
            (9, 3, &[0, 1, 3, 4, 5]),
        ],
    );
    let joined = [Type::INT4, Type::TEXT, Type::INT4, Type::INT4, Type::TEXT];
    let joined = Rows::new(columns(&joined), &[(25, 1, &[0, 1, 2, 3, 4])]);
    let nested: [(i32, i32, &[usize]); 3] = [
        (20, 1, &first),
        (200, 10, &[0, 1, 3, 4, 5]),
        (2_000, 10, &[0, 1, 3, 4, 5]),
    ];
    let nested = Rows::new(columns(&deeper), &nested);
    measure("1 x list of 10", 50_000, LIST, r#"{"id":7}"#, &list).await;
    measure(
        "25 rows with a to-one",
        20_000,
        TO_ONE,
        r#"{"first":7}"#,
        &joined,
    )
    .await;
    measure(
        "1 x 10, limit and order",
        50_000,
        LIMITED,
        r#"{"id":7}"#,
        &list,
    )
    .await;
    measure(
        "1 x 3 x 3, where and limits",
        20_000,
        LEVELS,
        r#"{"id":7}"#,
        &three,
    )
    .await;
    measure("20 x 10 x 10", 1_000, NESTED, r#"{"first":7}"#, &nested).await;
}

/// Prints the mean of many requests.
async fn measure(what: &str, times: u32, query: &str, variables: &str, rows: &Rows) {
    let schema = Arc::new(Schema::parse(SCHEMA).unwrap());
    let api = Api::new(schema, false, Limits::default());
    let principal = Principal::Role(Login {
        database: DatabaseName::new("shop"),
        role: RoleName::new("shop"),
        role_use: RoleUse::User(1),
    });
    let variables: &RawValue = serde_json::from_str(variables).unwrap();
    let mut began = cpu();
    for number in 0..times + times / 10 {
        if number == times / 10 {
            began = cpu();
        }
        let prepared = api.prepare(query, None).unwrap();
        let context = Context {
            executor: rows,
            principal: &principal,
            anonymous: false,
            options: QueryOptions::default(),
            response_budget: u64::MAX,
        };
        let response = api
            .execute(&prepared, Some(variables), context)
            .await
            .unwrap();
        assert!(response.executed, "{response:?}");
        std::hint::black_box(response);
    }
    let micros = (cpu() - began) * 1e6 / f64::from(times);
    println!("{micros:8.2} us  {what}");
}

/// The CPU time of the thread in seconds (`proc_pid_schedstat(5)`).
fn cpu() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = times.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e9
}

/// Returns the same rows for every statement.
struct Rows {
    columns: Vec<Column>,
    rows: Vec<BytesMut>,
}

impl Rows {
    /// Rows for each level: the number of parents, the rows of each, and the columns of the level;
    /// other columns are NULL.
    fn new(columns: Vec<Column>, levels: &[(i32, i32, &[usize])]) -> Self {
        let mut rows = Vec::new();
        for (level, (count, each, shown)) in levels.iter().enumerate() {
            for id in 0..*count {
                let mut row = BytesMut::new();
                for (at, column) in columns.iter().enumerate() {
                    let number = match at {
                        0 if levels.len() > 1 => i32::try_from(level).unwrap(),
                        1 => id / each,
                        _ => id,
                    };
                    if shown.contains(&at) {
                        value(column, number, &mut row);
                    } else {
                        row.put_i32(-1);
                    }
                }
                rows.push(row);
            }
        }
        Self { columns, rows }
    }

    fn push(&self, sink: &mut dyn RowSink) -> Result<Completion> {
        sink.columns(&self.columns)?;
        for row in &self.rows {
            sink.row(RawRow::new(self.columns.len(), row).unwrap())?;
        }
        Ok(Completion {
            affected_rows: None,
        })
    }
}

impl Executor for Rows {
    fn query<'a>(
        &'a self,
        _: &'a Principal,
        _: &'a BoundStatement,
        _: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move { self.push(sink) })
    }

    fn begin<'a>(
        &'a self,
        _: &'a Principal,
        _: Mode,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async { Err(Error::NoDatabase) })
    }

    fn pipeline<'a>(
        &'a self,
        _: &'a Principal,
        pipeline: Pipeline<'a>,
        _: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        Box::pin(async move {
            let steps = pipeline.steps.into_iter();
            let ran = steps.map(|step| self.push(step.sink));
            Ok(ran.collect::<Result<_>>()?)
        })
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

fn columns(types: &[Type]) -> Vec<Column> {
    let column = |r#type: &Type| Column {
        name: "column".to_owned(),
        r#type: r#type.clone(),
        format: WireFormat::Binary,
        origin: None,
    };
    types.iter().map(column).collect()
}

/// Appends a value in the format of `DataRow`.
fn value(column: &Column, number: i32, body: &mut BytesMut) {
    match column.r#type {
        Type::INT4 => {
            body.put_i32(4);
            body.put_i32(number);
        }
        Type::TIMESTAMPTZ => {
            body.put_i32(8);
            body.put_i64(800_000_000_123_456 + i64::from(number));
        }
        Type::NUMERIC => {
            body.put_i32(12);
            for field in [2_i16, 0, 0, 2, 9, 9900] {
                body.put_i16(field);
            }
        }
        _ => {
            let text = b"A title of some length";
            body.put_i32(i32::try_from(text.len()).unwrap());
            body.put_slice(text);
        }
    }
}
