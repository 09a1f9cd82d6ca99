//! Tests that the cached catalog follows changes of the database.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::graphql;
use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::{demo, eventually};

/// The longest wait for a change. A change takes effect within a second unless the machine is busy.
const SOON: Duration = Duration::from_secs(8);

async fn tables(user: Option<&str>) -> Vec<String> {
    let path = "/api/v4/sql/schema/public";
    let schema = demo().ask(Method::GET, path, user, None).await.json();
    let tables = schema["tables"].as_array().unwrap().iter();
    tables
        .map(|table| table["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Queries until the table is in the schema (`seen`), or until it is not.
async fn wait_for_table(user: Option<&str>, table: &str, seen: bool) {
    let began = Instant::now();
    while tables(user).await.iter().any(|name| name == table) != seen {
        assert!(
            began.elapsed() < SOON,
            "{table} {seen} after {:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn a_definition_past_the_node_takes_effect_soon() {
    let admin = demo().admin().await;
    tables(Some("demo")).await;
    let sql = "create table c_elsewhere (id int); alter table c_elsewhere owner to demo";
    admin.batch_execute(sql).await.unwrap();
    wait_for_table(Some("demo"), "c_elsewhere", true).await;
    admin.batch_execute("drop table c_elsewhere").await.unwrap();
    wait_for_table(Some("demo"), "c_elsewhere", false).await;
}

#[tokio::test]
async fn a_grant_and_a_membership_past_the_node_take_effect_soon() {
    let admin = demo().admin().await;
    let sql = "create table c_granted (id int); create table c_group (id int); \
               create role c_readers; grant select on c_group to c_readers";
    admin.batch_execute(sql).await.unwrap();
    let (alice, guest) = (Some("alice"), None);
    assert!(
        !tables(alice)
            .await
            .iter()
            .any(|name| name.starts_with("c_g"))
    );
    let sql = "grant select on c_granted to \"demo/alice\"; grant c_readers to \"demo/alice\"";
    admin.batch_execute(sql).await.unwrap();
    wait_for_table(alice, "c_granted", true).await;
    wait_for_table(alice, "c_group", true).await;
    assert!(
        !tables(guest)
            .await
            .iter()
            .any(|name| name.starts_with("c_g"))
    );
    let sql = "revoke all on c_granted from \"demo/alice\"; revoke c_readers from \"demo/alice\"";
    admin.batch_execute(sql).await.unwrap();
    wait_for_table(alice, "c_granted", false).await;
    wait_for_table(alice, "c_group", false).await;
    let sql = "drop table c_granted, c_group; drop role c_readers";
    admin.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn a_definition_through_this_node_is_there_at_once() {
    let demo = demo();
    for number in 0..5 {
        let name = format!("c_own_{number}");
        demo.rows("demo", &format!("create table {name} (id int)"), json!({}))
            .await;
        assert!(tables(Some("demo")).await.contains(&name));
        // The definition is in a block, and in a transaction of several statements.
        let block = format!("do $$ begin drop table {name}; end $$");
        demo.rows("demo", &block, json!({})).await;
        assert!(!tables(Some("demo")).await.contains(&name));
        let several = json!([{"q": format!("create table {name} (id int)")}, {"q": "select 1"}]);
        assert_eq!(demo.sql(Some("demo"), &several).await.status(), 200);
        assert!(tables(Some("demo")).await.contains(&name));
        demo.rows("demo", &format!("drop table {name}"), json!({}))
            .await;
        assert!(!tables(Some("demo")).await.contains(&name));
    }
}

/// Functions and triggers make these definitions, so only the database can notify of them.
#[tokio::test]
async fn a_definition_by_code_that_a_statement_runs_is_there_at_once() {
    let demo = demo();
    let own = async |q: &str| demo.rows("demo", q, json!({})).await;
    own(
        "create function c_make(name text) returns text language plpgsql as \
         $$ begin execute format('create table %I (id int)', name); return name; end $$",
    )
    .await;
    own("create table c_names (name text)").await;
    own(
        "create function c_made() returns trigger language plpgsql as \
         $$ begin perform c_make(new.name); return new; end $$",
    )
    .await;
    own("create trigger c_made after insert on c_names for each row execute function c_made()")
        .await;
    own("create table c_later (name text)").await;
    own(
        "create constraint trigger c_later after insert on c_later deferrable initially deferred \
         for each row execute function c_made()",
    )
    .await;
    let admin = demo.admin().await;
    let listening = "select count(*) from pg_stat_activity \
                     where datname = 'demo' and query = 'LISTEN tidegate_catalog'";
    for number in 0..6 {
        if number == 3 {
            // From this point on the database notifies the node. Before it, the node may still be
            // polling.
            eventually("the node listens", || async {
                let row = admin.query_one(listening, &[]).await.unwrap();
                row.get::<_, i64>(0) > 0
            })
            .await;
        }
        let name = |kind: &str| format!("c_{kind}_{number}");
        for (kind, call) in [
            ("called", "select c_make('{}')"),
            ("written", "insert into c_names values ('{}')"),
            ("deferred", "insert into c_later values ('{}')"),
        ] {
            own(&call.replace("{}", &name(kind))).await;
            assert!(tables(Some("demo")).await.contains(&name(kind)), "{kind}");
        }
        let several = json!([
            {"q": format!("select c_make('{}')", name("first"))},
            {"q": format!("insert into c_later values ('{}')", name("last"))},
        ]);
        assert_eq!(demo.sql(Some("demo"), &several).await.status(), 200);
        let known = tables(Some("demo")).await;
        assert!(known.contains(&name("first")) && known.contains(&name("last")));
    }
}

#[tokio::test]
async fn readiness_tells_of_the_catalog() {
    let readiness = demo().ask(Method::GET, "/readyz", None, None).await;
    let checks: Value = readiness.json()["checks"].clone();
    assert_eq!(checks["catalog"], "ok");
}

/// The node has service connections to listen to four databases, and polls the others in turn.
#[tokio::test]
async fn definitions_are_noticed_where_no_connection_is_left_to_listen() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let mut tenants = Vec::new();
    for name in ["north", "east", "south", "west", "inner", "outer"] {
        operator.succeeds(
            &["tenant", "create", name, "--password-file", "-"],
            "owner-password\n",
        );
        let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
        let client = ["client", "create", name, "App", "--id", name, "--public"];
        operator.succeeds(&[&client[..], &uri].concat(), "");
        let body = json!({
            "grant_type": "password", "username": name, "password": "owner-password",
            "database": name, "client_id": name,
        });
        let (status, tokens) = node.post("/api/v4/oauth", None, body).await;
        assert_eq!(status, StatusCode::OK, "{tokens}");
        let token = tokens["access_token"].as_str().unwrap().to_owned();
        tenants.push((operator.root(name).await, name, token));
    }
    let url = format!("{}/api/v4/sql/schema/public", node.url);
    let knows = async |token: &str, table: &str| {
        let response = node.client.get(&url).bearer_auth(token).send().await;
        response.unwrap().text().await.unwrap().contains(table)
    };
    // The first response makes each schema one that is in use.
    for (_, _, token) in &tenants {
        assert!(!knows(token, "orders").await);
    }
    for round in 0..3 {
        let table = format!("orders_{round}");
        for (root, owner, _) in &tenants {
            let sql = format!("CREATE TABLE {table} (); ALTER TABLE {table} OWNER TO {owner}");
            root.batch_execute(&sql).await.unwrap();
        }
        let began = Instant::now();
        for (_, name, token) in &tenants {
            while !knows(token, &table).await {
                assert!(began.elapsed() < SOON, "{name} never noticed {table}");
            }
        }
    }
}

/// The database has no event trigger, so the node finds changes by polling.
#[tokio::test]
async fn definitions_are_noticed_with_an_administrator_that_is_no_superuser() {
    let mut operator = Operator::new().await;
    let root = operator.root("postgres").await;
    let sql = "CREATE ROLE service LOGIN PASSWORD 'service'";
    root.batch_execute(sql).await.unwrap();
    let port = operator.cluster.port();
    operator.admin_url = format!("postgresql://service:service@127.0.0.1:{port}/postgres");
    let report = operator.run(&["doctor"], "");
    let report = String::from_utf8(report.stdout).unwrap();
    operator.run_printed_sql(&report).await;
    let create = ["tenant", "create", "shop", "--password-file", "-"];
    operator.succeeds(&create, "owner-password\n");
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let client = ["client", "create", "shop", "App", "--id", "app", "--public"];
    operator.succeeds(&[&client[..], &uri].concat(), "");

    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let url = format!("{}/api/v4/sql/schema/public", node.url);
    let knows = async |table: &str| {
        let response = node.client.get(&url).bearer_auth(token).send().await;
        response.unwrap().text().await.unwrap().contains(table)
    };
    assert!(!knows("orders").await);
    let inside = operator.root("shop").await;
    let sql = "CREATE TABLE orders (id int); ALTER TABLE orders OWNER TO shop";
    inside.batch_execute(sql).await.unwrap();
    let began = Instant::now();
    while !knows("orders").await {
        assert!(began.elapsed() < SOON, "it was never noticed");
    }
    // A definition by a function that a statement calls takes effect at once, because the node has
    // found by now that the database does not notify.
    let own = async |q: String| {
        let (status, response) = node.post("/api/v4/sql", Some(token), json!({"q": q})).await;
        assert_eq!(status, 200, "{response}");
    };
    own(
        "create function make(name text) returns text language plpgsql as \
         $$ begin execute format('create table %I (id int)', name); return name; end $$"
            .to_owned(),
    )
    .await;
    for number in 0..20 {
        let name = format!("made_{number}");
        own(format!("select make('{name}')")).await;
        assert!(knows(&name).await, "{name}");
    }
    let row = inside
        .query_one("SELECT count(*) FROM pg_event_trigger", &[])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 0);
    node.stop();
}

/// The GraphQL schema changes as soon as the SQL endpoint.
#[tokio::test]
async fn a_definition_past_the_node_is_in_graphql_soon() {
    let admin = demo().admin().await;
    graphql::data("demo", "{ __typename }", json!({})).await;
    for (sql, query) in [
        (
            "create table c_graphql (id int primary key); alter table c_graphql owner to demo",
            "{ x: getCGraphql { id } }",
        ),
        (
            "alter table c_graphql add column more int",
            "{ x: getCGraphql { more } }",
        ),
        (
            "alter table c_graphql rename to c_graphql_two",
            "{ x: getCGraphqlTwo { more } }",
        ),
    ] {
        admin.batch_execute(sql).await.unwrap();
        let began = Instant::now();
        let response = loop {
            let response = graphql::ask(Some("demo"), query, json!({})).await;
            if response["errors"][0]["extensions"]["code"] != "GRAPHQL_VALIDATION_FAILED" {
                break response;
            }
            assert!(began.elapsed() < SOON, "{sql}: {response}");
        };
        assert_eq!(response, json!({"data": {"x": []}}), "{sql}");
    }
}

/// Of two users and the default user, only those with privileges see a table and its columns.
#[tokio::test]
async fn a_grant_through_this_node_counts_for_the_next_response_of_those_who_have_it() {
    const USERS: [Option<&str>; 3] = [Some("alice"), Some("c_bob"), None];
    let demo = demo();
    let run = async |sql: &str| {
        demo.rows("demo", sql, json!({})).await;
    };
    let body = json!({"name": "c_bob", "password": "c_bob1234"});
    let made = demo.rest(Some("demo"), ("POST", "/api/v4/users"), &body);
    assert_eq!(made.await.status, 201);
    run("create table c_rights (id int primary key, secret int)").await;
    for (sql, id, secret) in [
        ("select 1", [false; 3], [false; 3]),
        (
            "grant select (id) on c_rights to \"demo/alice\"",
            [true, false, false],
            [false; 3],
        ),
        (
            "grant select on c_rights to \"demo/c_bob\"",
            [true, true, false],
            [false, true, false],
        ),
        (
            "grant select (id) on c_rights to public",
            [true; 3],
            [false, true, false],
        ),
        (
            "revoke select (id) on c_rights from \"demo/alice\"",
            [true; 3],
            [false, true, false],
        ),
        (
            "revoke select (id) on c_rights from public",
            [false, true, false],
            [false, true, false],
        ),
        (
            "revoke select on c_rights from \"demo/c_bob\"",
            [false; 3],
            [false; 3],
        ),
    ] {
        run(sql).await;
        for (column, expected) in [("id", id), ("secret", secret)] {
            let query = format!("{{ x: getCRights {{ {column} }} }}");
            for (user, sees) in USERS.iter().zip(expected) {
                let response = graphql::ask(*user, &query, json!({})).await;
                let refused =
                    response["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED";
                assert_eq!(!refused, sees, "{user:?} {column} after {sql}: {response}");
            }
        }
    }
    run("drop table c_rights").await;
}

/// A schema that cannot be loaded again stays as it was, and `/readyz` reports that.
#[tokio::test]
async fn a_catalog_that_cannot_be_loaded_is_kept_and_reported() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str();
    let ask = async |query: &str| {
        let path = "/api/graphql/schema/public";
        let (status, response) = node.post(path, token, json!({"query": query})).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        response
    };
    let old = json!({"data": {"getOrders": [{"total": "9.90"}]}});
    assert_eq!(ask("{ getOrders { total } }").await, old);
    let catalog = async || {
        let response = node.client.get(format!("{}/readyz", node.url)).send().await;
        let response = response.unwrap();
        let status = response.status();
        let response: Value = response.json().await.unwrap();
        (status, response["checks"]["catalog"].clone())
    };
    // Only the queries for the catalog's documents read comments, so a lock on their table blocks
    // nothing else.
    let holder = operator.root("shop").await;
    let lock = "BEGIN; LOCK TABLE pg_catalog.pg_description";
    holder.batch_execute(lock).await.unwrap();
    let inside = operator.root("shop").await;
    let change = "ALTER TABLE orders ADD more int";
    inside.batch_execute(change).await.unwrap();
    eventually("the catalog is degraded, and the node is ready", || async {
        catalog().await == (StatusCode::OK, json!("degraded"))
    })
    .await;
    assert_eq!(ask("{ getOrders { total } }").await, old);
    let response = ask("{ getOrders { more } }").await;
    let code = &response["errors"][0]["extensions"]["code"];
    assert_eq!(code, "GRAPHQL_VALIDATION_FAILED", "{response}");

    holder.batch_execute("COMMIT").await.unwrap();
    let change = "ALTER TABLE orders ADD again int";
    inside.batch_execute(change).await.unwrap();
    eventually("the catalog is fresh", || async {
        catalog().await == (StatusCode::OK, json!("ok"))
    })
    .await;
    let new = json!({"data": {"getOrders": [{"more": null, "again": null}]}});
    assert_eq!(ask("{ getOrders { more again } }").await, new);
    let log = node.stop();
    for reported in [
        "cannot load the catalog; keeping the previous one",
        "catalog reloaded after a failure",
    ] {
        assert!(log.contains(reported), "{reported}: {log}");
    }
}
