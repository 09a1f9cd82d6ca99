//! Tests the attacks of the module `attacks` at the other doors: by GraphQL and by methods, whose
//! statements run on shared connections, and as statements over a socket.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::attacks::ESCAPES;
use crate::node::{Node, operator};
use crate::shared_connections::{prepare, wait_for_sharing};
use crate::socket_client::socket_at;

/// The login of the connection. The word `session_user` would end sharing.
const LOGIN: &str = "(select usename::text from pg_stat_activity where pid = pg_backend_pid())";

/// Attack `place`, which switches to the role of the owner `shop`.
fn escape(place: usize) -> String {
    ESCAPES[place].replace("demo", "shop")
}

/// The definitions of the owner. For each attack there are two tables. Inserting a row with
/// `attack` runs the attack: in `lure…` before the insert, and in `late…` at the commit. The
/// function `queue…` inserts into `late…` with the owner's privileges.
fn definitions() -> String {
    let mut sql = format!(
        "SET ROLE shop; CREATE FUNCTION login_name() RETURNS text LANGUAGE sql AS $$ SELECT {LOGIN} $$;"
    );
    for place in 0..ESCAPES.len() {
        let escape = escape(place);
        for table in ["lure", "late"] {
            write!(
                sql,
                "CREATE TABLE {table}{place} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                     attack bool, login text DEFAULT login_name());
                 GRANT SELECT, INSERT ON {table}{place} TO PUBLIC;"
            )
            .unwrap();
        }
        write!(
            sql,
            "CREATE FUNCTION switch{place}() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN IF new.attack THEN {escape}; END IF; RETURN new; END $$;
             CREATE TRIGGER t BEFORE INSERT ON lure{place}
                 FOR EACH ROW EXECUTE FUNCTION switch{place}();
             CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late{place}
                 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION switch{place}();
             CREATE FUNCTION queue{place}(a bool) RETURNS text LANGUAGE sql SECURITY DEFINER AS
                 $$ INSERT INTO late{place} (attack) VALUES (a) RETURNING login $$;"
        )
        .unwrap();
    }
    sql + "RESET ROLE"
}

/// The owner's methods `lure…` and `queue…`, and `who`, which returns the caller's role and the
/// login of the connection.
fn methods() -> Value {
    let who = format!("select current_user::text as role, {LOGIN} as login");
    let mut methods = vec![json!({"method": "who", "q": who})];
    for place in 0..ESCAPES.len() {
        let lure = format!("insert into lure{place} (attack) values (:a) returning login");
        let queue = format!("select queue{place}(:a) as login");
        methods.push(json!({"method": format!("lure{place}"), "q": lure}));
        methods.push(json!({"method": format!("queue{place}"), "q": queue}));
    }
    json!(methods)
}

/// Inserts a row into a table by GraphQL. Returns the login of the connection, or the SQLSTATE.
async fn by_graphql(node: &Node, token: &str, table: &str, attack: bool) -> String {
    let field = table.replacen('l', "insertL", 1);
    let query = format!("mutation {{ rows: {field}(data: {{attack: {attack}}}) {{ login }} }}");
    let path = "/api/graphql/schema/public";
    let (_, response) = node.post(path, Some(token), json!({"query": query})).await;
    let login = &response["data"]["rows"][0]["login"];
    let sqlstate = &response["errors"][0]["extensions"]["sqlstate"];
    text([login, sqlstate], &response)
}

/// Calls a method. Returns the login of the connection, or the SQLSTATE.
async fn by_call(node: &Node, token: &str, method: &str, attack: bool) -> String {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"a": attack}});
    let (_, response) = node.post("/api/v4/call", Some(token), request).await;
    let login = &response["result"]["data"][0]["login"];
    text([login, &response["error"]["data"]["sqlstate"]], &response)
}

/// The one of two values that is a text.
fn text(values: [&Value; 2], response: &Value) -> String {
    let text = values.iter().find_map(|value| value.as_str());
    text.unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[tokio::test]
async fn a3_and_c2_no_trigger_leaves_a_shared_connection() {
    let operator = operator().await;
    let psql = operator.root("shop").await;
    psql.batch_execute(&definitions()).await.unwrap();
    let node = Node::start(&operator).await;
    let (alice, _) = prepare(&operator, &node).await;
    let owner = node.sign_in("shop", "shop", "owner-password").await;
    let owner = owner["access_token"].as_str();
    node.post("/api/v4/methods", owner, methods()).await;
    wait_for_sharing(&operator, &node, &alice).await;
    for (place, attempt) in ESCAPES.iter().enumerate() {
        // Without the attack, the same statements succeed on a shared connection.
        for (attack, expected) in [(false, "shop/$authenticator1"), (true, "42501")] {
            for table in ["lure", "late"] {
                let table = format!("{table}{place}");
                let done = by_graphql(&node, &alice, &table, attack).await;
                assert_eq!(done, expected, "{table}: {attempt}");
            }
            for method in ["lure", "queue"] {
                let method = format!("{method}{place}");
                let done = by_call(&node, &alice, &method, attack).await;
                assert_eq!(done, expected, "{method}: {attempt}");
                let request = json!({"jsonrpc": "2.0", "id": 1, "method": "who"});
                let (_, who) = node.post("/api/v4/call", Some(&alice), request).await;
                let expected = json!([{"role": "shop/alice", "login": "shop/$authenticator1"}]);
                assert_eq!(who["result"]["data"], expected, "{who}");
            }
        }
        let left = format!(
            "SELECT (SELECT count(*) FROM lure{place} WHERE attack)
                  + (SELECT count(*) FROM late{place} WHERE attack)"
        );
        let row = psql.query_one(&left, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), 0, "{attempt}");
    }
    node.stop();
}

#[tokio::test]
async fn a2_and_b_no_statement_over_a_socket_switches_the_role() {
    let operator = operator().await;
    let create = ["user", "create", "shop", "alice", "--password-file", "-"];
    operator.succeeds(&create, "alice-password\n");
    let node = Node::start(&operator).await;
    let mut socket = socket_at(&node, "alice", "alice-password").await;
    for place in 0..ESCAPES.len() {
        let q = format!("do $$ begin {}; end $$", escape(place));
        let refused = socket.ask(json!({"id": "attack", "q": q})).await;
        assert_eq!(refused["type"], "error", "{q}: {refused}");
        assert_eq!(refused["sqlstate"], "42501", "{q}: {refused}");
        let q = "select current_user::text as c, session_user::text as s";
        let who = socket.ask(json!({"id": "who", "q": q})).await;
        let alice = json!([{"c": "shop/alice", "s": "shop/alice"}]);
        assert_eq!(who["data"], alice, "{who}");
    }
    drop(socket);
    node.stop();
}
