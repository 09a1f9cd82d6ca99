//! Tests methods of the owner on shared connections.

use serde_json::{Value, json};

use crate::node::{Node, operator};

/// The response to a call of a user.
async fn call(node: &Node, user: &str, method: &str) -> Value {
    let token = node
        .sign_in("shop", user, &format!("{user}-password"))
        .await;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"a": user}});
    let token = token["access_token"].as_str();
    let (_, response) = node.post("/api/v4/call", token, request).await;
    response
}

#[tokio::test]
async fn a_method_that_calls_a_function_needs_no_login_of_each_user() {
    let operator = operator().await;
    for user in ["ann", "bob"] {
        let create = ["user", "create", "shop", user, "--password-file", "-"];
        operator.succeeds(&create, &format!("{user}-password\n"));
    }
    let inside = operator.root("shop").await;
    // `session_user` in a function would end sharing.
    let login = "(select usename from pg_stat_activity where pid = pg_backend_pid())";
    let functions = format!(
        "create function public.who(a text) returns text language plpgsql as
             $$ begin return concat_ws(' ', a, current_user, {login}); end $$;
         create function public.jump(a text) returns text language plpgsql as
             $$ begin return set_config('role', 'shop/' || a, true) || ' ' || {login}; end $$"
    );
    inside.batch_execute(&functions).await.unwrap();
    let node = Node::start(&operator).await;
    let owner = node.sign_in("shop", "shop", "owner-password").await;
    let methods = json!([
        {"method": "who", "q": "select who(:a) as who"},
        {"method": "jump", "q": "select jump(:a) as who"},
    ]);
    let token = owner["access_token"].as_str();
    node.post("/api/v4/methods", token, methods).await;
    for user in ["ann", "bob", "ann"] {
        let response = call(&node, user, "who").await;
        let who = format!("{user} shop/{user} shop/$authenticator1");
        assert_eq!(response["result"]["data"][0]["who"], who, "{response}");
        // On a login connection the role may only switch to itself.
        let response = call(&node, user, "jump").await;
        let who = format!("shop/{user} shop/{user}");
        assert_eq!(response["result"]["data"][0]["who"], who, "{response}");
    }
}
