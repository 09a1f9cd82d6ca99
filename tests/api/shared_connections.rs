//! Tests attacks on connections that the users of a tenant share, over two nodes and with psql.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::node::{Node, operator};
use crate::operator::{Operator, text};
use crate::service::eventually;

const INSERT: &str = "mutation { insertNotes(data: {what: \"x\"}) { who } }";
/// A trigger that switches to the role of bob without a function of its own. PostgreSQL runs it before
/// the first row is computed, so a switch that succeeds is visible in `who`, whose default is
/// `current_user`.
const EVIL: &str = "create trigger evil before insert on notes for each statement \
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

/// Whether alice was refused the role of bob, to which the trigger switches. Only a connection that
/// logged in as alice refuses it.
fn is_refused(response: &Value) -> bool {
    response["errors"][0]["extensions"]["sqlstate"] == "42501"
}

async fn shares(operator: &Operator) -> bool {
    let sessions = "SELECT count(*)::text FROM pg_stat_activity \
        WHERE usename LIKE 'shop/$authenticator%'";
    operator.value(sessions).await != "0"
}

/// Ends the sessions of the roles whose names match a pattern.
async fn end_sessions(operator: &Operator, roles: &str) {
    let end = "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity";
    let end = format!("{end} WHERE usename LIKE '{roles}'");
    operator.value(&end).await;
}

/// Waits until alice's statements run on a shared connection.
pub(crate) async fn wait_for_sharing(operator: &Operator, node: &Node, alice: &str) {
    eventually("alice shares a connection", || async {
        end_sessions(operator, "shop/%").await;
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
                let response = insert(node, &alice).await;
                let is_own = response["data"]["insertNotes"][0]["who"] == "shop/alice";
                assert!(is_own || is_refused(&response), "{response}");
            }
        };
        tokio::join!(attack, under_way);
        for node in [&one, &two] {
            let refused = insert(node, &alice).await;
            assert!(is_refused(&refused), "{refused}");
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

/// A change after which users no longer share connections, with the log line and the remedy that the
/// node must report. The test replaces `@` in the SQL by the name of the authenticator.
struct Harm {
    sql: &'static str,
    remedy: &'static str,
    /// Whether the authenticator may no longer log in, which closes its open sessions.
    ends_login: bool,
    /// Parts of the line that the node logs.
    logged: [&'static str; 3],
    /// A part of the doctor's report.
    reported: &'static str,
}

const OFF: &str = "shared connections are off for this tenant";
const ON_AGAIN: &str = "shared connections are on again";
const PARTLY: &str = "not all users of this tenant share connections";

/// An authenticator that cannot be used.
const UNUSABLE: Harm = Harm {
    sql: "ALTER ROLE @ INHERIT",
    remedy: "ALTER ROLE @ NOINHERIT",
    ends_login: false,
    logged: [PARTLY, "$authenticator1", "is locked or limited, inherits"],
    reported: "$authenticator1",
};

const HARMS: [Harm; 6] = [
    Harm {
        sql: "ALTER ROLE @ NOLOGIN",
        remedy: "ALTER ROLE @ LOGIN",
        ends_login: true,
        ..UNUSABLE
    },
    Harm {
        sql: "ALTER ROLE @ VALID UNTIL '2001-01-01'",
        remedy: "ALTER ROLE @ VALID UNTIL 'infinity'",
        ends_login: true,
        ..UNUSABLE
    },
    UNUSABLE,
    Harm {
        sql: "ALTER ROLE @ SUPERUSER",
        remedy: "ALTER ROLE @ NOSUPERUSER",
        logged: [OFF, "has SUPERUSER, CREATEROLE", "NOSUPERUSER NOCREATEROLE"],
        ..UNUSABLE
    },
    Harm {
        sql: "ALTER ROLE @ BYPASSRLS",
        remedy: "ALTER ROLE @ NOBYPASSRLS",
        logged: [OFF, "has SUPERUSER, CREATEROLE", "NOSUPERUSER NOCREATEROLE"],
        ..UNUSABLE
    },
    Harm {
        sql: "GRANT TRIGGER ON notes TO \"shop/mallory\"",
        remedy: "REVOKE TRIGGER ON notes FROM \"shop/mallory\"",
        logged: [
            OFF,
            "may make triggers on public.notes",
            "REVOKE TRIGGER ON public.notes FROM",
        ],
        reported: "may make triggers on public.notes",
        ..UNUSABLE
    },
];

const DROPPED: Harm = Harm {
    sql: "DROP OWNED BY @; DROP ROLE @",
    remedy: "",
    ends_login: true,
    logged: [
        PARTLY,
        "an authenticator is missing",
        "tidegate user repair",
    ],
    reported: "0 authenticator(s)",
};

/// A node with a user that shares connections.
struct Sharing<'a> {
    operator: &'a Operator,
    node: &'a Node,
    psql: &'a Client,
    alice: &'a str,
}

impl Sharing<'_> {
    /// Runs SQL as the superuser.
    async fn run(&self, sql: &str) {
        let sql = sql.replace('@', "\"shop/$authenticator1\"");
        self.psql.batch_execute(&sql).await.unwrap();
    }

    /// Inserts a row as alice, which must succeed.
    async fn insert(&self, when: &str) {
        let response = insert(self.node, self.alice).await;
        let written = json!({"insertNotes": [{"who": "shop/alice"}]});
        assert_eq!(response["data"], written, "{when}: {response}");
    }

    /// Whether users share connections, according to the node's metrics.
    async fn metric(&self) -> String {
        let metrics = self.node.client.get(format!("{}/metrics", self.node.url));
        let metrics = metrics.send().await.unwrap().text().await.unwrap();
        let name = "tidegate_shared_connections{database=\"shop\"} ";
        let value = metrics.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap_or("none").to_owned()
    }

    /// Waits until alice shares a connection and the node reports it.
    async fn resumes(&self) {
        wait_for_sharing(self.operator, self.node, self.alice).await;
        eventually("the metric is 1", || async { self.metric().await == "1" }).await;
    }

    /// Ends the sharing. Checks that alice's requests go on, and what is reported.
    async fn ends(&self, harm: &Harm) {
        let logged = self.node.logged(&harm.logged);
        self.run(harm.sql).await;
        for _ in 0..20 {
            self.insert(harm.sql).await;
        }
        eventually(harm.sql, || async {
            self.insert(harm.sql).await;
            self.node.logged(&harm.logged) > logged
        })
        .await;
        assert_eq!(self.metric().await, "0", "{}", harm.sql);
        eventually("no shared session is left", || async {
            // Idle sessions of an authenticator that may log in stay open. They are ended here, so
            // that a session that is opened later is noticed.
            if !harm.ends_login {
                end_sessions(self.operator, "shop/$authenticator%").await;
            }
            !shares(self.operator).await
        })
        .await;
        for _ in 0..20 {
            self.insert(harm.sql).await;
        }
        assert!(!shares(self.operator).await, "{}", harm.sql);
        let report = text(&self.operator.run(&["doctor"], "").stdout);
        assert!(report.contains(harm.reported), "{}: {report}", harm.sql);
    }
}

#[tokio::test]
async fn a_locked_authenticator_is_logged_and_no_request_waits() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let (alice, _) = prepare(&operator, &node).await;
    let psql = operator.root("shop").await;
    let sharing = Sharing {
        operator: &operator,
        node: &node,
        psql: &psql,
        alice: &alice,
    };
    sharing.resumes().await;
    for harm in HARMS {
        let again = node.logged(&[ON_AGAIN]);
        sharing.ends(&harm).await;
        sharing.run(harm.remedy).await;
        sharing.resumes().await;
        // Only the end of sharing for the whole tenant is followed by this line.
        let expected = again + usize::from(harm.logged[0] == OFF);
        eventually(harm.remedy, || async {
            node.logged(&[ON_AGAIN]) == expected
        })
        .await;
    }
    sharing.ends(&DROPPED).await;
    operator.succeeds(&["user", "repair", "shop", "--all"], "");
    sharing.resumes().await;
    node.stop();
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
        let (_, response) = node.post("/api/graphql/schema/public", token, query).await;
        let rows = response["data"]["getOrders"].as_array();
        assert_eq!(rows.map(Vec::len), Some(1), "{response}");
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
