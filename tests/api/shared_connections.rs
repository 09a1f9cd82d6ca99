//! Tests attacks on connections that the users of a tenant share, over two nodes and with psql.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;

const INSERT: &str = "mutation { insertNotes(data: {what: \"x\"}) { who } }";
/// A trigger that switches to bob before every row, without a function of its own.
const EVIL: &str = "create trigger evil before insert on notes for each row \
    when (set_config('role', 'shop/bob', true) is null) \
    execute function suppress_redundant_updates_trigger()";

/// Creates the table that all users write. Returns the tokens of alice and mallory.
pub(crate) async fn prepare(operator: &Operator, node: &Node) -> (String, String) {
    let inside = operator.root("shop").await;
    for user in ["alice", "bob", "mallory"] {
        let create = ["user", "create", "shop", user, "--password-file", "-"];
        operator.succeeds(&create, &format!("{user}-password\n"));
    }
    let sql = "CREATE TABLE notes (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
            who text DEFAULT current_user, what text); \
        GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT SELECT, INSERT ON notes TO PUBLIC";
    inside.batch_execute(sql).await.unwrap();
    let mut tokens = Vec::new();
    for user in ["alice", "mallory"] {
        let signed_in = node
            .sign_in("shop", user, &format!("{user}-password"))
            .await;
        tokens.push(signed_in["access_token"].as_str().unwrap().to_owned());
    }
    let mallory = tokens.remove(1);
    (tokens.remove(0), mallory)
}

/// Inserts a row as alice. Returns the response, which contains the row's role or the error.
async fn insert(node: &Node, token: &str) -> Value {
    let path = "/api/graphql/schema/public";
    let body = json!({"query": INSERT});
    node.post(path, Some(token), body).await.1
}

async fn shares(operator: &Operator) -> bool {
    let sessions = "SELECT count(*)::text FROM pg_stat_activity \
        WHERE usename LIKE 'shop/$authenticator%'";
    operator.value(sessions).await != "0"
}

/// Waits until alice's statements run on a shared connection.
pub(crate) async fn wait_for_sharing(operator: &Operator, node: &Node, alice: &str) {
    eventually("alice shares a connection", || async {
        let end = "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity \
            WHERE usename LIKE 'shop/%'";
        operator.value(end).await;
        insert(node, alice).await;
        shares(operator).await
    })
    .await;
}

#[tokio::test]
async fn a_trigger_created_right_after_its_grant_switches_no_user() {
    let operator = operator().await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let (alice, mallory) = prepare(&operator, &one).await;
    let psql = operator.root("shop").await;
    for node in [&one, &two, &two] {
        wait_for_sharing(&operator, &one, &alice).await;
        wait_for_sharing(&operator, &two, &alice).await;
        let attack = async {
            let grant = "GRANT TRIGGER ON notes TO \"shop/mallory\"";
            psql.batch_execute(grant).await.unwrap();
            // The trigger is refused while another user's statement runs on a shared connection.
            let made = || node.post("/api/v4/sql", Some(&mallory), json!({"q": EVIL}));
            eventually("the trigger is made", || async {
                made().await.0 == StatusCode::OK
            })
            .await;
        };
        let under_way = async {
            for round in 0..30 {
                let node = if round % 2 == 0 { &one } else { &two };
                insert(node, &alice).await;
            }
        };
        tokio::join!(attack, under_way);
        for node in [&one, &two] {
            let refused = insert(node, &alice).await;
            assert_eq!(
                refused["errors"][0]["extensions"]["sqlstate"], "42501",
                "{refused}"
            );
        }
        let sql = "DROP TRIGGER evil ON notes; REVOKE TRIGGER ON notes FROM \"shop/mallory\"";
        psql.batch_execute(sql).await.unwrap();
    }
    let writers = "SELECT string_agg(DISTINCT who, ' ') FROM notes";
    let row = psql.query_one(writers, &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "shop/alice");
    one.stop();
    two.stop();
}

#[tokio::test]
async fn a_locked_authenticator_is_logged_and_no_request_waits() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let (alice, _) = prepare(&operator, &node).await;
    wait_for_sharing(&operator, &node, &alice).await;
    let psql = operator.root("shop").await;
    let written = json!({"insertNotes": [{"who": "shop/alice"}]});
    for (harm, mend) in [
        ("NOLOGIN", "LOGIN"),
        ("VALID UNTIL '2001-01-01'", "VALID UNTIL 'infinity'"),
        ("INHERIT", "NOINHERIT"),
        ("SUPERUSER", "NOSUPERUSER"),
        ("BYPASSRLS", "NOBYPASSRLS"),
    ] {
        let alter = |what: &str| format!("ALTER ROLE \"shop/$authenticator1\" {what}");
        psql.batch_execute(&alter(harm)).await.unwrap();
        for _ in 0..20 {
            let answer = insert(&node, &alice).await;
            assert_eq!(answer["data"], written, "{harm}: {answer}");
        }
        let report = operator.run(&["doctor"], "");
        let report = String::from_utf8(report.stdout).unwrap();
        assert!(report.contains("$authenticator1"), "{harm}: {report}");
        psql.batch_execute(&alter(mend)).await.unwrap();
    }
    let drop = "DROP OWNED BY \"shop/$authenticator1\"; DROP ROLE \"shop/$authenticator1\"";
    psql.batch_execute(drop).await.unwrap();
    for _ in 0..20 {
        let answer = insert(&node, &alice).await;
        assert_eq!(answer["data"], written, "dropped: {answer}");
    }
    let report = operator.run(&["doctor"], "");
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("0 authenticator(s)"), "{report}");
    let log = node.stop();
    assert!(
        log.contains("not all users of this tenant share connections"),
        "no word in the log"
    );
}

/// A tenant of a release without authenticators, which reads while a node creates them.
#[tokio::test]
async fn a_node_that_starts_creates_authenticators_while_it_serves() {
    let operator = operator().await;
    let create = ["user", "create", "shop", "alice", "--password-file", "-"];
    operator.succeeds(&create, "alice-password\n");
    let psql = operator.root("shop").await;
    let older = "GRANT SELECT ON orders TO \"shop/alice\"; \
        DROP OWNED BY \"shop/$authenticator1\"; DROP ROLE \"shop/$authenticator1\"; \
        DROP EVENT TRIGGER tidegate_catalog; DROP SCHEMA tidegate_catalog CASCADE";
    psql.batch_execute(older).await.unwrap();
    // A node takes this lock before it creates authenticators.
    let home = operator.root("postgres").await;
    let key = "(hashtextextended('tidegate authenticators of shop', 0))";
    let lock = format!("SELECT pg_advisory_lock{key}");
    home.batch_execute(&lock).await.unwrap();
    let node = Node::start(&operator).await;
    let alice = node.sign_in("shop", "alice", "alice-password").await;
    let read = async || {
        let query = json!({"query": "{ getOrders { id } }"});
        let token = alice["access_token"].as_str();
        let (_, answer) = node.post("/api/graphql/schema/public", token, query).await;
        let rows = answer["data"]["getOrders"].as_array();
        assert_eq!(rows.map(Vec::len), Some(1), "{answer}");
    };
    let waiting = "SELECT count(*)::text FROM pg_stat_activity \
        WHERE wait_event_type = 'Lock' AND wait_event = 'advisory'";
    eventually("the node waits for the lock", async || {
        read().await;
        operator.value(waiting).await != "0"
    })
    .await;
    read().await;
    assert!(!shares(&operator).await);
    let unlock = format!("SELECT pg_advisory_unlock{key}");
    home.batch_execute(&unlock).await.unwrap();
    eventually("alice shares a connection", async || {
        read().await;
        shares(&operator).await
    })
    .await;
    node.stop();
}
