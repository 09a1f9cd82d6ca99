//! Measures how long the API of a large schema takes to build and to introspect, and its memory:
//! `cargo run --release -p tidegate-graphql --example measure_schema [tables]`.

#![expect(
    clippy::print_stdout,
    reason = "a program that measures reads the clock and prints"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Context, Limits};
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Executor, Mode, Principal, QueryOptions,
    Result, RowSink, Transaction,
};

/// Introspection needs no database.
struct NoExecutor;

impl Executor for NoExecutor {
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

const INTROSPECTION: &str = "{ __schema { queryType { name } types { kind name description \
    fields(includeDeprecated: true) { name description args { name description type { ...type } \
    defaultValue } type { ...type } isDeprecated deprecationReason } inputFields { name } \
    interfaces { ...type } enumValues { name } possibleTypes { ...type } } } } \
    fragment type on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tables = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |text| text.parse())?;
    let schema = Arc::new(Schema::parse(&document(tables)?)?);
    let before = resident()?;
    let begin = Instant::now();
    let api = Api::new(schema, false, Limits::default());
    println!(
        "{tables} tables: API made in {:?}, {} MiB",
        begin.elapsed(),
        (resident()? - before) >> 20
    );
    let context = Context {
        executor: &NoExecutor,
        principal: &Principal::Control,
        anonymous: false,
        options: QueryOptions::default(),
        response_budget: u64::MAX,
    };
    for what in ["first", "second"] {
        let begin = Instant::now();
        let prepared = api
            .prepare(INTROSPECTION, None)
            .map_err(|errors| format!("{errors:?}"))?;
        let response = api.execute(&prepared, None, context).await?;
        let (mut size, mut reader) = (0, response.body.read());
        while let Some(bytes) = reader.next().await {
            size += bytes?.len();
        }
        let size = size >> 20;
        println!("{what} introspection: {:?}, {size} MiB", begin.elapsed());
    }
    println!("resident: {} MiB", resident()? >> 20);
    Ok(())
}

/// Tables with ten columns, each with a foreign key to the previous one.
fn document(tables: usize) -> Result<String, Box<dyn Error>> {
    let mut text = String::from("{\"name\":\"public\",\"relations\":[");
    for table in 0..tables {
        let comma = if table > 0 { "," } else { "" };
        write!(
            text,
            "{comma}{{\"name\":\"table_{table}\",\"kind\":\"table\",\"rights\":\"siud\",\"columns\":[{{\"name\":\"id\",\"type\":\"int4\",\"not_null\":true}},{{\"name\":\"before\",\"type\":\"int4\"}}"
        )?;
        for column in 0..8 {
            let kind = ["text", "int8", "numeric", "timestamptz"][column % 4];
            write!(
                text,
                ",{{\"name\":\"column_{column}\",\"type\":\"{kind}\"}}"
            )?;
        }
        let before = table.saturating_sub(1);
        write!(
            text,
            "],\"constraints\":[{{\"name\":\"table_{table}_pkey\",\"kind\":\"primary\",\"columns\":[\"id\"]}},{{\"name\":\"table_{table}_before\",\"kind\":\"foreign\",\"columns\":[\"before\"],\"references\":{{\"relation\":\"table_{before}\",\"columns\":[\"id\"]}}}}]}}"
        )?;
    }
    text.push_str("]}");
    Ok(text)
}

/// The resident memory of this process, in bytes.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap_or_default().trim().trim_end_matches(" kB");
    Ok(number.parse::<u64>()? << 10)
}
