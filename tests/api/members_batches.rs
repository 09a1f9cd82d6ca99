//! Claims of members in batches and behind savepoints (docs/API.md, "Members"): what one call sets
//! does not make a later call of its transaction another member's.

use serde_json::{Value, json};

use crate::members::{SignedIn, run, two};
use crate::users::owner;

/// Runs its argument as SQL. The second also undoes it, by the savepoint of its exception block.
const FUNCTIONS: [&str; 2] = [
    "create function mbatch_run(q text) returns text language plpgsql as \
     'declare found text; begin execute q into found; return found; end'",
    "create function mbatch_undo(q text) returns text language plpgsql as \
     'begin execute q; raise exception ''undone''; \
      exception when others then return tidegate.user_id(); end'",
];

fn call(method: &str, q: &str, id: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"q": q}, "id": id})
}

async fn batch(member: &SignedIn, calls: Vec<Value>) -> Value {
    member.post("/api/v4/call", json!(calls)).await.body
}

#[tokio::test]
async fn a_call_of_a_batch_does_not_become_another_member() {
    let (a, b) = two("mbatch").await;
    b.data("mutation { insertMbatchNotes(data: {title: \"of b\"}) { id } }")
        .await;
    for function in FUNCTIONS {
        run(function).await;
    }
    for name in ["mbatch_run", "mbatch_undo"] {
        let method = json!({"method": name, "q": format!("select {name}(:q) as found"),
            "type_hints": {"q": "text"}});
        let made = owner("POST", "/api/v4/methods", method).await;
        assert_eq!(made.status, 201, "{made:?}");
    }
    let who = "select tidegate.user_id()";
    let rows = "select string_agg(title, '') from mbatch_notes";
    let known = batch(&a, vec![call("mbatch_run", who, 1)]).await;
    assert_eq!(known[0]["result"]["data"][0]["found"], *a.id, "{known}");
    for forgery in [
        format!("select set_config('tidegate.identity', '{}', true)", b.id),
        format!(
            "select set_config('tidegate.identity', \
             replace(current_setting('tidegate.identity'), '{}', '{}'), true)",
            a.id, b.id
        ),
        "select set_config('tidegate.identity', '', true)".to_owned(),
    ] {
        for method in ["mbatch_run", "mbatch_undo"] {
            let calls = vec![
                call(method, &forgery, 1),
                call("mbatch_run", who, 2),
                call("mbatch_run", rows, 3),
            ];
            let responses = batch(&a, calls).await;
            let responses = responses
                .as_array()
                .unwrap_or_else(|| panic!("{responses}"));
            for response in responses.iter().filter(|response| response["id"] != 1) {
                let found = &response["result"]["data"][0]["found"];
                assert!(found.is_null() || found == &*a.id, "{forgery}: {response}");
                // A failed call ends the transaction; one that was undone leaves the claims.
                if method == "mbatch_undo" && response["id"] == 2 {
                    assert_eq!(found, &*a.id, "{forgery}: {response}");
                }
            }
            assert!(!json!(responses).to_string().contains("of b"), "{forgery}");
        }
        for member in [&a, &b] {
            let next = batch(member, vec![call("mbatch_run", who, 1)]).await;
            assert_eq!(next[0]["result"]["data"][0]["found"], *member.id, "{next}");
        }
    }
}
