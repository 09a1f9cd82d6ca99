//! Tests what documents see of concurrent changes (API.md, "Transactions").

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::graphql::{PUBLIC, ask, code, data, settled};
use crate::service::{demo, eventually};

/// A gate. A document that reads the view `gql_gate_<number>` waits until the gate is opened.
pub(crate) struct Gate {
    number: u32,
    pub(crate) admin: Client,
}

impl Gate {
    pub(crate) async fn new(number: u32) -> Self {
        let admin = demo().admin().await;
        let view = format!(
            "create or replace function gql_wait_{number}() returns int language plpgsql as
             $$ begin perform pg_advisory_xact_lock_shared({number}); return 1; end $$;
             create or replace view gql_gate_{number} as select gql_wait_{number}() as id;
             alter view gql_gate_{number} owner to demo"
        );
        admin.batch_execute(&view).await.unwrap();
        settled(Some("demo"), &format!("{{ getGqlGate{number} {{ id }} }}")).await;
        let gate = Self { number, admin };
        gate.close().await;
        gate
    }

    async fn close(&self) {
        let lock = format!("select pg_advisory_lock({})", self.number);
        self.admin.batch_execute(&lock).await.unwrap();
    }

    /// Sends a document and waits until it has reached the gate.
    pub(crate) async fn start_and_wait(&self, query: &str) -> JoinHandle<Value> {
        let query = query.replace("GATE", &format!("gate: getGqlGate{} {{ id }}", self.number));
        let asked = tokio::spawn(async move { ask(Some("demo"), &query, json!({})).await });
        eventually("the document waits", || async {
            let waiting = "select count(*) from pg_locks where locktype = 'advisory' \
                           and objid = $1 and not granted";
            let row = self
                .admin
                .query_one(waiting, &[&self.number])
                .await
                .unwrap();
            row.get::<_, i64>(0) == 1
        })
        .await;
        asked
    }

    pub(crate) async fn open(&self) {
        let unlock = format!("select pg_advisory_unlock({})", self.number);
        self.admin.batch_execute(&unlock).await.unwrap();
    }
}

/// Sends an array of documents.
fn array(queries: &[&str]) -> JoinHandle<Value> {
    let requests = queries.iter().map(|query| json!({"query": query}));
    let body = Value::Array(requests.collect()).to_string();
    tokio::spawn(async move {
        let response = demo().ask(Method::POST, PUBLIC, Some("demo"), Some(body));
        response.await.json()
    })
}

#[tokio::test]
async fn queries_of_an_array_run_at_once_and_mutations_between_them_in_order() {
    let gate = Gate::new(8207).await;
    let setup = "create table if not exists gql_order (id int primary key, n int);
         insert into gql_order values (1, 0) on conflict do nothing;
         alter table gql_order owner to demo";
    gate.admin.batch_execute(setup).await.unwrap();
    settled(Some("demo"), "{ getGqlOrder { id } }").await;
    let (wait, read) = ("{ getGqlGate8207 { id } }", "{ getGqlOrder { n } }");
    let write = "mutation { updateGqlOrder(id: 1, data: {n: 1}) { n } }";
    let asked = array(&[wait, read, wait, "{", write, read, wait]);
    let waiting = |count: i64| {
        let gate = &gate;
        async move {
            let waiting = "select count(*) from pg_locks where locktype = 'advisory' \
                           and objid = 8207 and not granted";
            let row = gate.admin.query_one(waiting, &[]).await.unwrap();
            row.get::<_, i64>(0) == count
        }
    };
    // The documents after the mutation have not started.
    eventually("both queries wait", || waiting(2)).await;
    gate.open().await;
    let response = asked.await.unwrap();
    let row = |n: u8| json!({"data": {"getGqlOrder": [{"n": n}]}});
    let passed = json!({"data": {"getGqlGate8207": [{"id": 1}]}});
    assert_eq!([&response[0], &response[2], &response[6]], [&passed; 3]);
    assert_eq!(
        (&response[1], &response[5]),
        (&row(0), &row(1)),
        "{response}"
    );
    assert_eq!(response[4]["data"]["updateGqlOrder"][0]["n"], 1);
    assert_eq!(
        response[3]["errors"][0]["extensions"]["code"],
        "GRAPHQL_PARSE_FAILED"
    );
}

#[tokio::test]
async fn a_query_sees_one_snapshot_however_many_statements_it_needs() {
    let gate = Gate::new(8200).await;
    let setup = "create table if not exists gql_seen (id int primary key, n int);
         create table if not exists gql_seen_part (id int primary key, seen int references gql_seen, n int);
         insert into gql_seen values (1, 0) on conflict do nothing;
         insert into gql_seen_part values (1, 1, 0) on conflict do nothing;
         alter table gql_seen owner to demo; alter table gql_seen_part owner to demo";
    gate.admin.batch_execute(setup).await.unwrap();
    settled(Some("demo"), "{ getGqlSeen { id gqlSeenPart { id } } }").await;
    let query = "{ a: getGqlSeen { n } GATE b: getGqlSeen { n gqlSeenPart { n } } c: getGqlSeenAggregate { count sum { n } } d: getGqlSeenPart(limit: 5) { n gqlSeen { n } } }";
    let asked = gate.start_and_wait(query).await;
    let change = "begin; update gql_seen set n = 1; update gql_seen_part set n = 1; \
                  insert into gql_seen values (2, 1); insert into gql_seen_part values (2, 1, 1); commit";
    gate.admin.batch_execute(change).await.unwrap();
    gate.open().await;
    let response = asked.await.unwrap();
    assert_eq!(
        response["data"],
        json!({
            "a": [{"n": 0}], "gate": [{"id": 1}], "b": [{"n": 0, "gqlSeenPart": [{"n": 0}]}],
            "c": [{"count": 1, "sum": {"n": "0"}}], "d": [{"n": 0, "gqlSeen": {"n": 0}}],
        }),
        "{response}"
    );
    // The next request sees the changed row.
    let after = data(
        "demo",
        "{ getGqlSeenAggregate { count sum { n } } }",
        json!({}),
    )
    .await;
    assert_eq!(
        after["getGqlSeenAggregate"],
        json!([{"count": 2, "sum": {"n": "2"}}])
    );
}

/// Others see no part of the mutation before its response, and all of it afterwards.
#[tokio::test]
async fn no_part_of_a_mutation_is_visible() {
    let gate = Gate::new(8201).await;
    let setup = "create table if not exists gql_partly (id int primary key, gate int);
         create or replace function gql_partly_wait() returns trigger language plpgsql as
         $$ begin perform gql_wait_8201(); return new; end $$;
         create or replace trigger gql_partly_wait before insert on gql_partly
             for each row when (new.id = 2) execute function gql_partly_wait();
         alter table gql_partly owner to demo";
    gate.admin.batch_execute(setup).await.unwrap();
    settled(Some("demo"), "{ getGqlPartly { id } }").await;
    let query = "mutation { a: insertGqlPartly(data: {id: 1}) { id } b: insertGqlPartly(data: {id: 2}) { id } }";
    let asked = gate.start_and_wait(query).await;
    let ids = "{ getGqlPartly { id } }";
    assert_eq!(
        data("demo", ids, json!({})).await["getGqlPartly"],
        json!([])
    );
    gate.open().await;
    assert_eq!(
        asked.await.unwrap()["data"],
        json!({"a": [{"id": "1"}], "b": [{"id": "2"}]})
    );
    let found = data("demo", ids, json!({})).await;
    assert_eq!(found["getGqlPartly"], json!([{"id": "1"}, {"id": "2"}]));
}

#[tokio::test]
async fn each_request_of_an_array_is_a_transaction_of_its_own() {
    let setup = "create table if not exists gql_apart (id int primary key, \
                 tx text not null default pg_current_xact_id()::text)";
    demo().rows("demo", setup, json!({})).await;
    let insert = |ids: &[u8]| {
        let fields: Vec<_> = ids
            .iter()
            .map(|id| format!("i{id}: insertGqlApart(data: {{id: {id}}}) {{ tx }}"))
            .collect();
        json!({"query": format!("mutation {{ {} }}", fields.join(" "))})
    };
    // The second document fails in its second field. The others are committed.
    let body = json!([insert(&[1, 2]), insert(&[3, 1]), insert(&[4]), {"query": "{ getGqlApart { id } }"}]);
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("demo"), Some(body.to_string()))
        .await;
    let response = response.json();
    let tx = |at: usize, key: &str| response[at]["data"][key][0]["tx"].clone();
    assert!(tx(0, "i1").is_string(), "{response}");
    assert_eq!(tx(0, "i1"), tx(0, "i2"));
    assert_ne!(tx(0, "i1"), tx(2, "i4"));
    assert_eq!(response[1]["data"], Value::Null);
    assert_eq!(response[1]["errors"][0]["extensions"]["sqlstate"], "23505");
    assert_eq!(
        response[3]["data"]["getGqlApart"],
        json!([{"id": "1"}, {"id": "2"}, {"id": "4"}])
    );
}

#[tokio::test]
async fn a_request_in_flight_ends_on_the_schema_that_it_began_with() {
    let gate = Gate::new(8202).await;
    let setup = "create table if not exists gql_flight (id int primary key, old int);
         create table if not exists gql_flight_gone (id int primary key, old int);
         insert into gql_flight values (1, 5) on conflict do nothing;
         alter table gql_flight owner to demo; alter table gql_flight_gone owner to demo";
    gate.admin.batch_execute(setup).await.unwrap();
    settled(
        Some("demo"),
        "{ getGqlFlight { old } getGqlFlightGone { old } }",
    )
    .await;

    let asked = gate
        .start_and_wait(
            "{ GATE getGqlFlight { id old } t: __type(name: \"GqlFlight\") { fields { name } } }",
        )
        .await;
    let change = "alter table gql_flight add column more int";
    gate.admin.batch_execute(change).await.unwrap();
    // While the document waits, other requests see the new column.
    settled(Some("demo"), "{ getGqlFlight { more } }").await;
    gate.open().await;
    let response = asked.await.unwrap();
    assert_eq!(response.get("errors"), None, "{response}");
    assert_eq!(
        response["data"]["getGqlFlight"],
        json!([{"id": "1", "old": 5}])
    );
    let fields = response["data"]["t"]["fields"].as_array().unwrap().clone();
    assert!(
        fields.iter().all(|field| field["name"] != "more"),
        "{response}"
    );

    // The table was dropped meanwhile, and the next request takes that into account.
    gate.close().await;
    let asked = gate
        .start_and_wait("{ GATE getGqlFlightGone { old } }")
        .await;
    let change = "alter table gql_flight_gone drop column old";
    gate.admin.batch_execute(change).await.unwrap();
    gate.open().await;
    let response = asked.await.unwrap();
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "CONFLICT",
        "{response}"
    );
    assert_eq!(
        response["errors"][0]["extensions"]["sqlstate"], "42703",
        "{response}"
    );
    eventually("the column is gone", || async {
        let found = ask(Some("demo"), "{ getGqlFlightGone { old } }", json!({})).await;
        found["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    })
    .await;
}

/// Definitions change between two requests that use the caches; no request may fail because of it.
#[tokio::test]
async fn a_column_that_changes_its_type_breaks_no_request() {
    let setup = "create table if not exists gql_turned (id int primary key, n int, parent int references gql_turned);
                 insert into gql_turned values (1, 5, 1)";
    for statement in setup.split(';') {
        demo().rows("demo", statement, json!({})).await;
    }
    let admin = demo().admin().await;
    let query =
        "{ getGqlTurned(where: {n: {gt: 0}}) { n gqlTurned { n } gqlTurnedByParent { n } } }";
    for r#type in ["bigint", "numeric", "int", "float8", "smallint"] {
        for _ in 0..10 {
            // The role's connections have cached the statement now.
            data("demo", query, json!({})).await;
        }
        let change = format!("alter table gql_turned alter n type {type} using n::text::{type}");
        admin.batch_execute(&change).await.unwrap();
        let response = ask(Some("demo"), query, json!({})).await;
        assert_eq!(response.get("errors"), None, "{type}: {response}");
        settled(Some("demo"), query).await;
    }
}

/// PostgreSQL refuses at once, even if the cached schema is stale.
#[tokio::test]
async fn a_revoked_privilege_is_refused_in_the_next_request() {
    let setup = "create table if not exists gql_lost (id int primary key, open int, secret int);
         alter table gql_lost owner to demo;
         grant select, insert, update, delete on gql_lost to \"demo/alice\"";
    let admin = demo().admin().await;
    admin.batch_execute(setup).await.unwrap();
    let cases = [
        (
            "{ getGqlLost { open } }",
            "revoke select on gql_lost from \"demo/alice\"; grant select (id) on gql_lost to \"demo/alice\"",
        ),
        (
            "mutation { insertGqlLost(data: {id: 1}) { id } }",
            "revoke insert on gql_lost from \"demo/alice\"",
        ),
        (
            "mutation { updateGqlLost(id: 1, data: {open: 1}) { id } }",
            "revoke update on gql_lost from \"demo/alice\"",
        ),
        (
            "mutation { deleteGqlLost(id: 1) { id } }",
            "revoke delete on gql_lost from \"demo/alice\"",
        ),
        (
            "{ getGqlLost { id } }",
            "revoke all on gql_lost from \"demo/alice\"; revoke select (id) on gql_lost from \"demo/alice\"",
        ),
    ];
    for (query, revoke) in cases {
        let before = settled(Some("alice"), query).await;
        assert_eq!(before.get("errors"), None, "{query}: {before}");
        admin.batch_execute(revoke).await.unwrap();
        let code = code("alice", query, json!({})).await;
        assert!(
            ["FORBIDDEN", "GRAPHQL_VALIDATION_FAILED"].contains(&&*code),
            "{query}: {code}"
        );
    }
    // In an array, the privilege is revoked between the first and the second request.
    admin
        .batch_execute("grant select on gql_lost to \"demo/alice\"")
        .await
        .unwrap();
    settled(Some("alice"), "{ getGqlLost { open } }").await;
    let revoke =
        "create or replace function gql_revoke() returns int language plpgsql security definer as
         $$ begin revoke select on gql_lost from \"demo/alice\"; return 1; end $$;
         create or replace function gql_revoking() returns trigger language plpgsql as
         $$ begin perform gql_revoke(); return new; end $$;
         create table if not exists gql_last (id int);
         create or replace trigger gql_revoking before insert on gql_last
             for each row execute function gql_revoking();
         grant insert on gql_last to \"demo/alice\"; grant select on gql_last to \"demo/alice\"";
    admin.batch_execute(revoke).await.unwrap();
    settled(Some("alice"), "{ getGqlLast { id } }").await;
    let body = json!([
        {"query": "{ getGqlLost { open } }"},
        {"query": "mutation { insertGqlLast(data: {id: 1}) { id } }"},
        {"query": "{ getGqlLost { open } }"},
    ]);
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("alice"), Some(body.to_string()))
        .await;
    let response = response.json();
    assert_eq!(response[0]["data"], json!({"getGqlLost": []}), "{response}");
    assert_eq!(
        response[1]["data"],
        json!({"insertGqlLast": [{"id": 1}]}),
        "{response}"
    );
    assert_eq!(
        response[2]["errors"][0]["extensions"]["code"], "FORBIDDEN",
        "{response}"
    );
}
