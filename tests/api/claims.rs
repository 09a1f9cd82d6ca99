//! Policies that call `tidegate.user_id()` and `tidegate.claim()`, for users with a role.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;

const USERS: &str = "/api/v4/users";

/// A table with a policy by organisation, for all users of the tenant.
const INVOICES: &str = "CREATE TABLE invoices (id int PRIMARY KEY, org text DEFAULT tidegate.claim('org'), \
        author text DEFAULT tidegate.user_id(), title text); \
    INSERT INTO invoices VALUES (1, 'acme', 'x', 'Paint'), (2, 'globex', 'x', 'Cement'), \
        (3, NULL, NULL, 'Free'); \
    ALTER TABLE invoices ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY org ON invoices USING (org = (SELECT tidegate.claim('org'))); \
    CREATE POLICY free ON invoices FOR SELECT USING (org IS NULL \
        AND (SELECT tidegate.claim('anonymous')) = 'true'); \
    GRANT USAGE ON SCHEMA public TO PUBLIC; GRANT ALL ON invoices TO PUBLIC";

async fn rest(node: &Node, verb: reqwest::Method, path: &str, token: &str, body: Value) -> u16 {
    let request = node.client.request(verb, format!("{}{path}", node.url));
    // Redirects of PATCH lead to the user.
    let response = request.bearer_auth(token).json(&body).send().await.unwrap();
    response.status().as_u16()
}

async fn token(node: &Node, user: &str) -> String {
    let name = if user == "shop" { "owner" } else { user };
    let signed_in = node
        .sign_in("shop", user, &format!("{name}-password"))
        .await;
    signed_in["access_token"].as_str().unwrap().to_owned()
}

/// The titles that a caller sees, by SQL and by GraphQL.
async fn titles(node: &Node, token: Option<&str>) -> Vec<String> {
    let query = json!({"query": "{ getInvoices(orderBy: {id: asc}) { title } }"});
    let path = "/api/graphql/schema/public";
    let (status, response) = if token.is_some() {
        node.post(path, token, query).await
    } else {
        let url = format!("{}{path}", node.url);
        let request = node.client.post(url).header("Tidegate-Database", "shop");
        let response = request.json(&query).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    };
    assert_eq!(status, StatusCode::OK, "{response}");
    let rows = response["data"]["getInvoices"].as_array();
    let rows = rows.unwrap_or_else(|| panic!("{response}"));
    let by_graphql: Vec<_> = rows.iter().map(|row| row["title"].clone()).collect();
    if token.is_some() {
        let q = json!({"q": "select title from invoices order by id"});
        let (_, response) = node.post("/api/v4/sql", token, q).await;
        let rows = response["data"].as_array().unwrap();
        let by_sql: Vec<_> = rows.iter().map(|row| row["title"].clone()).collect();
        assert_eq!(by_graphql, by_sql);
    }
    let text = |title: &Value| title.as_str().unwrap().to_owned();
    by_graphql.iter().map(text).collect()
}

async fn prepared(operator: &Operator) -> Node {
    let node = Node::start(operator).await;
    let inside = operator.root("shop").await;
    inside.batch_execute(INVOICES).await.unwrap();
    node
}

#[tokio::test]
async fn each_caller_sees_the_rows_of_its_organisation() {
    let operator = operator().await;
    let node = prepared(&operator).await;
    let owner = token(&node, "shop").await;
    let users = json!([
        {"name": "ann", "password": "ann-password", "properties": {"org": "acme"}},
        {"name": "gil", "password": "gil-password", "properties": {"org": "globex"}},
        {"name": "non", "password": "non-password"},
        {"name": "anybody", "default_user": true, "properties": {"region": "north"}},
    ]);
    let made = rest(&node, reqwest::Method::POST, USERS, &owner, users).await;
    assert_eq!(made, 201);
    let (ann, gil) = (token(&node, "ann").await, token(&node, "gil").await);
    let non = token(&node, "non").await;
    // The first requests run on a login of the user, later ones on shared connections.
    for _ in 0..20 {
        assert_eq!(titles(&node, Some(&ann)).await, ["Paint"]);
        assert_eq!(titles(&node, Some(&gil)).await, ["Cement"]);
        assert_eq!(titles(&node, Some(&non)).await, Vec::<String>::new());
        assert_eq!(titles(&node, None).await, ["Free"]);
    }
    let insert = json!({"query": "mutation { insertInvoices(data: {id: 9, title: \"Own\"}) { org author } }"});
    let (_, response) = node
        .post("/api/graphql/schema/public", Some(&ann), insert)
        .await;
    let text = response.to_string();
    assert!(
        text.contains("\"acme\"") && text.contains("\"ann\""),
        "{text}"
    );

    // A change counts at once, for tokens that were issued before.
    let path = format!("{USERS}/gil");
    let moved = json!({"properties": {"org": "acme"}});
    rest(&node, reqwest::Method::PATCH, &path, &owner, moved).await;
    assert_eq!(titles(&node, Some(&gil)).await, ["Paint", "Own"]);
    let cleared = json!({"properties": null});
    rest(&node, reqwest::Method::PATCH, &path, &owner, cleared).await;
    assert_eq!(titles(&node, Some(&gil)).await, Vec::<String>::new());

    // A caller changes neither its properties nor what the functions return.
    let own = json!({"properties": {"org": "acme"}});
    let refused = rest(&node, reqwest::Method::PATCH, &path, &gil, own).await;
    assert_eq!(refused, 403);
    for forgery in [
        "select set_config('tidegate.claims', '{\"org\": \"acme\"}', false)",
        "update tidegate_private.identities set claims = '{\"org\": \"acme\"}'",
        "insert into tidegate_private.identities values ('shop/gil', 'gil', '{\"org\": \"acme\"}')",
        "create function tidegate.claim(text, int) returns text language sql as $$ select 'acme' $$",
    ] {
        node.post("/api/v4/sql", Some(&gil), json!({"q": forgery}))
            .await;
        assert_eq!(
            titles(&node, Some(&gil)).await,
            Vec::<String>::new(),
            "{forgery}"
        );
    }
    // A user that gets the name of a dropped one gets no claims.
    let drop = node.client.delete(format!("{}{USERS}/ann", node.url));
    let dropped = drop.bearer_auth(&owner).send().await.unwrap();
    assert_eq!(dropped.status(), StatusCode::NO_CONTENT);
    let again = json!({"name": "ann", "password": "ann-password"});
    let made = rest(&node, reqwest::Method::POST, USERS, &owner, again).await;
    assert_eq!(made, 201);
    let ann = token(&node, "ann").await;
    assert_eq!(titles(&node, Some(&ann)).await, Vec::<String>::new());
    // A number of more than 64 bits would be rounded to the number of another organisation.
    let large = r#"{"org": [{"id": 98765432109876543210987}]}"#;
    let large = json!({"name": "large", "password": "large-password", "properties": large});
    let (status, response) = node.post(USERS, Some(&owner), large).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{response}");
    assert!(response.to_string().contains("`org[0].id`"), "{response}");
    let nul = json!({"name": "nul", "password": "nul-password", "properties": {"a": "\0"}});
    let refused = rest(&node, reqwest::Method::POST, USERS, &owner, nul).await;
    assert_eq!(refused, 400);
}

#[tokio::test]
async fn a_node_that_starts_creates_what_an_older_tenant_lacks() {
    let operator = operator().await;
    let create = ["user", "create", "shop", "ann", "--password-file", "-"];
    operator.succeeds(&create, "ann-password\n");
    let inside = operator.root("shop").await;
    let older = "DROP SCHEMA tidegate CASCADE; DROP SCHEMA tidegate_private CASCADE";
    inside.batch_execute(older).await.unwrap();
    let control = operator.root("tidegate").await;
    let properties =
        "UPDATE tidegate.users SET properties = '{\"org\": \"acme\"}' WHERE name = 'ann'";
    control.batch_execute(properties).await.unwrap();
    let doctor = operator.run(&["doctor"], "");
    let report = crate::operator::text(&doctor.stdout);
    assert!(
        report.contains("in shop are missing, of another release"),
        "{report}"
    );

    let node = Node::start(&operator).await;
    let identities = "SELECT coalesce(string_agg(concat_ws(' ', role, user_id, claims), ', ' \
        ORDER BY role), '') FROM tidegate_private.identities";
    let expected = "shop shop {}, shop/ann ann {\"org\": \"acme\"}";
    let row = async || {
        let there = "SELECT to_regclass('tidegate_private.identities') IS NOT NULL";
        let there: bool = inside.query_one(there, &[]).await.unwrap().get(0);
        if !there {
            return String::new();
        }
        inside.query_one(identities, &[]).await.unwrap().get(0)
    };
    eventually("the node has created them", async || {
        row().await == expected
    })
    .await;
    node.stop();

    // A node that starts corrects identities that differ, and functions with a key that was
    // replaced.
    inside
        .batch_execute(
            "DELETE FROM tidegate_private.identities WHERE role = 'shop/ann'; \
             INSERT INTO tidegate_private.identities VALUES ('shop/gone', 'x', '{\"org\": \"acme\"}')",
        )
        .await
        .unwrap();
    let printed = operator.succeeds(&["key", "rotate", "--claims", "--database", "shop"], "");
    assert_eq!(printed, "The claims of shop have a key of generation 2.\n");
    let _node = Node::start(&operator).await;
    eventually("the node has corrected them", async || {
        row().await == expected
    })
    .await;
    let generation = "SELECT prosrc ~ 'generation 2' FROM pg_proc WHERE proname = 'user_id'";
    let kept: bool = inside.query_one(generation, &[]).await.unwrap().get(0);
    assert!(kept);
    let doctor = operator.run(&["doctor"], "");
    let report = crate::operator::text(&doctor.stdout);
    assert!(
        report.contains("policies in shop can call tidegate.user_id()"),
        "{report}"
    );
}
