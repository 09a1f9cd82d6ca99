//! Members who read on a replica (docs/API.md, "Replicas" and "Members"): claims and policies hold
//! there too, although a replica writes nothing.

use serde_json::{Value, json};

use crate::members::{GRAPHQL, USERS};
use crate::node::Node;
use crate::operator::Operator;
use crate::replicas::{metric, replicated};

/// A table with a policy by person and one by organisation.
const NOTES: &str = "CREATE TABLE notes (title text PRIMARY KEY, \
        author text NOT NULL DEFAULT tidegate.user_id(), org text DEFAULT tidegate.claim('org')); \
    ALTER TABLE notes ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY own ON notes USING (author = (SELECT tidegate.user_id())); \
    CREATE POLICY org ON notes FOR SELECT USING (org = (SELECT tidegate.claim('org'))); \
    GRANT ALL ON notes TO PUBLIC; \
    INSERT INTO notes VALUES ('of a', 'a', 'acme'), ('of b', 'b', 'globex'), \
        ('of acme', 'x', 'acme'), ('of nobody', 'x', NULL)";

async fn post(node: &Node, token: &str, query: &str) -> Value {
    let (status, response) = node
        .post(GRAPHQL, Some(token), json!({"query": query}))
        .await;
    assert_eq!(status, 200, "{response}");
    response["data"].clone()
}

/// Creates the members `a` and `b`, and returns their tokens.
async fn members(operator: &Operator, node: &Node) -> [String; 2] {
    let owner = node.sign_in("shop", "shop", "owner-password").await;
    let member = |name: &str, org: &str| {
        json!({"name": name, "id": name, "kind": "member", "user_group": "people",
            "password": format!("{name}-password"), "properties": {"org": org}})
    };
    let both = json!([member("a", "acme"), member("b", "globex")]);
    let (status, response) = node.post(USERS, owner["access_token"].as_str(), both).await;
    assert_eq!(status, 201, "{response}");
    operator
        .root("shop")
        .await
        .batch_execute(NOTES)
        .await
        .unwrap();
    let mut tokens = [String::new(), String::new()];
    for (name, token) in ["a", "b"].into_iter().zip(&mut tokens) {
        let signed_in = node
            .sign_in("shop", name, &format!("{name}-password"))
            .await;
        signed_in["access_token"]
            .as_str()
            .unwrap()
            .clone_into(token);
    }
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_policies_hold_on_a_replica() {
    const ROUNDS: u64 = 50;
    let (operator, replica, node) = replicated("0").await;
    let [a, b] = members(&operator, &node).await;
    tidegate_testkit::caught_up(&operator.cluster, &replica).await;
    tidegate_testkit::eventually("the API has the table", async || {
        let known = post(&node, &a, "{ __type(name: \"Notes\") { name } }").await;
        known["__type"].is_object()
    })
    .await;
    let before = metric(&node, "reads_total").await;
    // The members read in turn, so that both use the same connections. On a busy machine the
    // replica is sometimes too far behind, and the primary answers.
    let query = "{ getNotes(orderBy: {title: asc}) { title } getNotesAggregate { count } \
        one: getNotes(where: {title: {eq: \"of b\"}}) { author } }";
    tidegate_testkit::eventually("reads on the replica", async || {
        for _ in 0..ROUNDS {
            let seen = post(&node, &a, query).await;
            let own = json!([{"title": "of a"}, {"title": "of acme"}]);
            assert_eq!((&seen["getNotes"], &seen["one"]), (&own, &json!([])));
            assert_eq!(seen["getNotesAggregate"], json!([{"count": 2}]));
            let seen = post(&node, &b, query).await;
            assert_eq!(seen["getNotes"], json!([{"title": "of b"}]));
            assert_eq!(seen["one"], json!([{"author": "b"}]));
        }
        metric(&node, "reads_total").await - before >= 2 * ROUNDS
    })
    .await;
    assert_eq!(metric(&node, "failed_reads_total").await, 0);
}
