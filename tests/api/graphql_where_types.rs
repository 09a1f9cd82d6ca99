//! Tests keys and operators of `where` on a column of every type of this PostgreSQL.

use std::fmt::Write as _;

use reqwest::Method;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::graphql::PUBLIC;
use crate::service::{Service, demo_folder, eventually};
use crate::socket_client::{Socket, open_at};

/// Creates a column of each type that a column can have, with all extensions that contain types.
const SINK: &str = "
    do $$ declare wanted text; begin
        foreach wanted in array '{citext,hstore,ltree,cube,seg,isn,intarray,postgis}'::text[] loop
            if exists (select from pg_available_extensions where name = wanted) then
                execute 'create extension if not exists ' || quote_ident(wanted);
            end if;
        end loop;
    end $$;
    create type mood as enum ('sad', 'ok'); create type pair as (a int, b text);
    create type stamps as (a int, x xid); create type span as range (subtype = float8);
    create domain document as jsonb; create domain feeling as mood; create domain paths as ltree[];
    create table sink (id int primary key, up int references sink);
    do $$ declare one record; begin
        for one in select t.typname, format_type(t.oid, null) as spelt from pg_type t
            where t.typtype in ('b', 'r', 'm', 'e', 'd') and t.typisdefined
              and t.typnamespace in ('pg_catalog'::regnamespace, 'public'::regnamespace)
               or t.typname in ('pair', '_pair', 'stamps', '_stamps')
        loop begin
            execute format('alter table sink add column %I %s', 'c' || one.typname, one.spelt);
        exception when others then null; end; end loop;
    end $$;
    insert into sink (id) values (1), (2); alter table sink owner to demo;";

const OPERATORS: [&str; 18] = [
    "eq",
    "neq",
    "in",
    "nin",
    "isNull",
    "gt",
    "gte",
    "lt",
    "lte",
    "like",
    "ilike",
    "startsWith",
    "endsWith",
    "contains",
    "regex",
    "iregex",
    "containedBy",
    "overlaps",
];

/// Names of operators in other APIs, and typing mistakes.
const WORDS: [&str; 12] = [
    "_contains",
    "contain",
    "haskey",
    "has_key",
    "_has_key",
    "Contains",
    "EQ",
    "_eq",
    "is",
    "=",
    "$eq",
    "keep",
];

struct TypesFixture {
    demo: Service,
    admin: Client,
    _folder: tempfile::TempDir,
}

impl TypesFixture {
    /// Starts a demo of its own, because extensions fill the schema that other tests describe.
    async fn new() -> Self {
        let folder = demo_folder();
        let demo = Service::start(folder.path().to_str().unwrap(), &[]);
        let admin = demo.admin().await;
        admin.batch_execute(SINK).await.unwrap();
        let sink = Self {
            demo,
            admin,
            _folder: folder,
        };
        eventually("the table", || async {
            let body = json!({"query": "{ getSink { id } }"}).to_string();
            let response = sink
                .demo
                .ask(Method::POST, PUBLIC, Some("demo"), Some(body));
            response.await.json().get("errors").is_none()
        })
        .await;
        sink
    }

    /// The columns with their types as SQL writes them.
    async fn columns(&self) -> Vec<(String, String)> {
        let text = "select attname::text, format_type(atttypid, null) from pg_attribute
                    where attrelid = 'sink'::regclass and attname like 'c%' and attnum > 0 order by 1";
        let rows = self.admin.query(text, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    async fn ask(&self, query: &str, variables: Value) -> Value {
        let body = json!({"query": query, "variables": variables}).to_string();
        let response = self
            .demo
            .ask(Method::POST, PUBLIC, Some("demo"), Some(body))
            .await;
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }

    /// Sends one query with a root field for each condition. Returns the error of each.
    async fn read(&self, conditions: &[Value]) -> Vec<Value> {
        let (mut definitions, mut fields) = (String::new(), String::new());
        let mut variables = json!({});
        for (at, condition) in conditions.iter().enumerate() {
            let _ = write!(definitions, "$w{at}: JSON ");
            let _ = write!(fields, "r{at}: getSink(where: $w{at}) {{ id }} ");
            variables[format!("w{at}")] = condition.clone();
        }
        let query = format!("query({definitions}) {{ {fields} }}");
        let response = self.ask(&query, variables).await;
        let errors = response["errors"].as_array().cloned().unwrap_or_default();
        (0..conditions.len())
            .map(|at| {
                let key = json!(format!("r{at}"));
                let found = errors.iter().find(|error| error["path"][0] == key);
                found.cloned().unwrap_or_default()
            })
            .collect()
    }

    /// The condition with which PostgreSQL compares a column with itself; `None` if it cannot.
    async fn plan(&self, column: &str, symbol: &str) -> Option<String> {
        let column = column.replace('"', "\"\"");
        let text = format!("explain select from sink where \"{column}\" {symbol} \"{column}\"");
        let rows = self.admin.query(&text, &[]).await.ok()?;
        Some(rows.iter().map(|row| row.get::<_, String>(0)).collect())
    }

    async fn socket(&self) -> Socket {
        let token = self.demo.token("demo").await;
        open_at(&self.demo.url, &format!("/?token={token}"), &[])
            .await
            .unwrap()
    }
}

/// Whether an error reports an unknown key at a place, and lists the valid operators.
fn is_refused(error: &Value, place: &str) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    error["extensions"]["code"] == "BAD_USER_INPUT"
        && message.contains(&format!("`{place}` is not an operator"))
        && message.contains("`isNull`")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_that_is_no_operator_changes_nothing_on_any_type() {
    let sink = TypesFixture::new().await;
    let columns = sink.columns().await;
    assert!(columns.len() > 100, "{}", columns.len());
    let mut socket = sink.socket().await;
    for (at, (column, _)) in columns.iter().enumerate() {
        let word = WORDS[at % WORDS.len()];
        let object = json!({word: {"keep": true}, "isNull": true});
        let below = json!({"not": {"or": [{"id": 7}, {"and": [{column: object}]}]}});
        let place = format!("where.not.or[1].and[0].{column}.{word}");
        let related = json!({"sink": {column: {word: 1}}});
        let errors = sink
            .read(&[below.clone(), json!({column: {word: 1}}), related])
            .await;
        assert!(is_refused(&errors[0], &place), "{errors:?}");
        assert!(
            is_refused(&errors[1], &format!("where.{column}.{word}")),
            "{errors:?}"
        );
        assert!(
            is_refused(&errors[2], &format!("where.sink.{column}.{word}")),
            "{errors:?}"
        );
        for query in [
            "mutation($w: JSON) { deleteSink(where: $w) { id } }",
            "mutation($w: JSON) { updateSink(where: $w, data: {up: 1}) { id } }",
            "query($w: JSON) { getSinkAggregate(where: $w) { count } }",
        ] {
            let response = sink.ask(query, json!({"w": below})).await;
            assert!(
                is_refused(&response["errors"][0], &place),
                "{query}: {response}"
            );
        }
        let query = "subscription($w: JSON) { SinkMessageUpdated(where: $w) { id } }";
        for message in [
            json!({"type": "subscribe", "schema": "public", "query": query, "variables": {"w": below}}),
            json!({"type": "subscription", "schema": "public", "rel": "sink", "where": below}),
        ] {
            let mut message = message;
            message["id"] = json!(column);
            let response = socket.ask(message).await;
            assert_eq!(response["type"], "error", "{response}");
            assert_eq!(response["error"], "bad_user_input", "{response}");
            let reported = response["message"].as_str().unwrap();
            assert!(
                reported.contains(&place) && reported.contains("`isNull`"),
                "{response}"
            );
        }
    }
    let count = "select count(*) from sink where up is null";
    let left: i64 = sink.admin.query_one(count, &[]).await.unwrap().get(0);
    assert_eq!(left, 2, "a mutation went through");
}

/// A value that most types of a kind accept.
fn value(r#type: &str) -> Value {
    match r#type {
        array if array.ends_with("[]") => json!("{}"),
        range if range.ends_with("multirange") => json!("{}"),
        range if range.ends_with("range") || range == "span" => json!("empty"),
        "jsonb" | "document" | "oid" | "smallint" | "integer" | "bigint" => json!(1),
        "boolean" => json!(true),
        "uuid" => json!("00000000-0000-0000-0000-000000000000"),
        "bytea" => json!("\\x01"),
        "paths" | "oidvector" | "int2vector" => json!("{}"),
        _ => json!("1"),
    }
}

/// Whether a type is left out: its operators in PostgreSQL's catalog have another meaning (areas,
/// lengths and numbers of points), or the service compares it as text or bytes.
fn is_left_out(r#type: &str) -> bool {
    let r#type = r#type.trim_end_matches("[]");
    ["box", "circle", "lseg", "path", "line", "point", "polygon"].contains(&r#type)
        || r#type.starts_with("pg_")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_has_the_operators_that_postgresql_has_for_it() {
    let sink = TypesFixture::new().await;
    for (column, r#type) in sink.columns().await {
        let conditions = OPERATORS.map(|operator| {
            let one = value(&r#type);
            json!({&column: {operator: match operator {
                "in" | "nin" => json!([one]),
                "isNull" => json!(false),
                "overlaps" if matches!(&*r#type, "jsonb" | "document") => json!(["a"]),
                _ => one,
            }}})
        });
        let errors = sink.read(&conditions).await;
        for (operator, error) in OPERATORS.iter().zip(&errors) {
            let place = format!("where.{column}.{operator}");
            let offered = !is_refused(error, &place);
            // An offered operator works if it runs, or if PostgreSQL accepts it and refuses the
            // value.
            let state = error["extensions"]["sqlstate"].as_str();
            let runs = error.is_null() || state.is_some_and(|state| !state.starts_with("42"));
            assert!(!offered || runs, "{type}: {operator}: {error}");
            let symbol = match *operator {
                "eq" => "=",
                "gt" => ">",
                "gte" => ">=",
                "lt" => "<",
                "lte" => "<=",
                _ => continue,
            };
            let plan = sink.plan(&column, symbol).await;
            let exists = plan.is_some();
            // This is an operator of another type, to which the column's type has a cast.
            let is_other = plan.is_some_and(|plan| plan.contains(")::"));
            // PostgreSQL compares elements of arrays and attributes only if there are values.
            let composed = r#type.ends_with("[]") || matches!(&*r#type, "stamps" | "pair");
            let left_out = is_other || composed || is_left_out(&r#type);
            assert!(
                offered || left_out || !exists,
                "{type} has {operator} in PostgreSQL only"
            );
        }
    }
}
