//! Tests requests of subscriptions (API.md, "Sockets and change events"). The module
//! `socket_events` tests the delivery.

use serde_json::{Value, json};

use crate::graphql::{data, wait_for_type};
use crate::service::demo;
use crate::socket_client::socket;

async fn prepare() {
    let admin = demo().admin().await;
    let version = "select current_setting('server_version_num')::int";
    let version: i32 = admin.query_one(version, &[]).await.unwrap().get(0);
    // From PostgreSQL 18 on, events have stored generated columns. They never have virtual ones.
    let generated = if version < 180_000 {
        "stored"
    } else {
        "virtual"
    };
    let followed = format!(
        "create table gql_followed (id int primary key, name text, at daterange, twice int generated always as (id * 2) {generated}, up int references gql_followed)"
    );
    admin.batch_execute(&followed).await.unwrap();
    let setup = "
         create unlogged table gql_fleeting (id int primary key);
         create view gql_looked as select id from gql_followed;
         create materialized view gql_looked_once as select id from gql_followed;
         create foreign data wrapper gql_nowhere; create server gql_nowhere foreign data wrapper gql_nowhere;
         create foreign table gql_distant (id int) server gql_nowhere;
         create table gql_split (id int primary key) partition by range (id);
         create table gql_split_one partition of gql_split default;
         alter table gql_followed owner to demo; alter table gql_fleeting owner to demo;
         alter view gql_looked owner to demo; alter materialized view gql_looked_once owner to demo;
         alter table gql_split owner to demo; alter table gql_split_one owner to demo;
         grant select on gql_distant to demo";
    admin.batch_execute(setup).await.unwrap();
    wait_for_type("GqlDistant").await;
}

#[tokio::test]
async fn only_tables_with_a_log_have_subscriptions_and_only_of_their_columns() {
    prepare().await;
    let found = data(
        "demo",
        "{ __type(name: \"Subscription\") { fields { name } } }",
        json!({}),
    )
    .await;
    let names: Vec<_> = found["__type"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["name"].clone())
        .collect();
    for (r#type, followed) in [
        ("GqlFollowed", true),
        ("GqlSplit", true),
        ("GqlFleeting", false),
        ("GqlLooked", false),
        ("GqlLookedOnce", false),
        ("GqlDistant", false),
        ("GqlSplitOne", false),
    ] {
        for change in ["Added", "Updated", "Deleted"] {
            let name = json!(format!("{type}Message{change}"));
            assert_eq!(names.contains(&name), followed, "{name}");
        }
    }
    let mut socket = socket("demo").await;
    for (document, error, word) in [
        (
            "subscription { GqlFollowedMessageAdded { gqlFollowed { id } } }",
            "bad_user_input",
            "relationship",
        ),
        (
            "subscription { GqlFollowedMessageAdded { id gqlFollowedByUp { id } } }",
            "bad_user_input",
            "relationship",
        ),
        (
            "subscription { GqlFollowedMessageAdded { id twice } }",
            "unsupported_subscription",
            "generated",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: {twice: 2}) { id } }",
            "unsupported_subscription",
            "twice",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: {gqlFollowed: {}}) { id } }",
            "unsupported_filter",
            "gqlFollowed",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: {at: {contains: \"2024-01-01\"}}) { id } }",
            "unsupported_filter",
            "at",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: {nothing: 1}) { id } }",
            "",
            "nothing",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: \"nothing = 1\") { id } }",
            "",
            "nothing",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: \"id = \") { id } }",
            "",
            "",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: \"id = 1; drop table gql_followed\") { id } }",
            "",
            "",
        ),
        (
            "subscription { GqlFollowedMessageAdded { nothing } }",
            "graphql_validation_failed",
            "nothing",
        ),
        (
            "subscription { GqlLookedMessageAdded { id } }",
            "graphql_validation_failed",
            "GqlLookedMessageAdded",
        ),
        (
            "subscription { a: GqlFollowedMessageAdded { id } b: GqlSplitMessageAdded { id } }",
            "",
            "",
        ),
        ("subscription { __typename }", "", ""),
        (
            "subscription { GqlFollowedMessageAdded(where: {name: 5}) { id } }",
            "bad_user_input",
            "`where.name` is a number, expected a string",
        ),
        (
            "subscription { GqlFollowedMessageAdded(where: \"name in ('a', 5)\") { id } }",
            "bad_user_input",
            "a number, expected a string",
        ),
    ] {
        let message =
            json!({"type": "subscribe", "id": "x", "schema": "public", "query": document});
        let response = socket.ask(message).await;
        assert_eq!(response["type"], "error", "{document}: {response}");
        assert_eq!(response["id"], "x", "{document}: {response}");
        if !error.is_empty() {
            assert_eq!(response["error"], error, "{document}: {response}");
        }
        assert!(
            response["message"].as_str().unwrap().contains(word),
            "{document}: {response}"
        );
    }
    // Aliases, fragments and variables are supported. A partition counts as its root.
    let document = "subscription S($n: JSON = 2) { new: GqlFollowedMessageAdded(where: {or: [{id: $n}, {name: \"x\"}]}) { key: id ...rest } } fragment rest on GqlFollowed { __typename name }";
    socket.subscribe("a", document).await;
    socket
        .subscribe(
            "b",
            "subscription { GqlSplitMessageAdded { id __typename } }",
        )
        .await;
    demo()
        .rows(
            "demo",
            "insert into gql_followed (id, name) values (1, 'y'), (2, 'y'), (3, 'x')",
            json!({}),
        )
        .await;
    for (key, name) in [("2", "y"), ("3", "x")] {
        let event = socket.receive().await;
        let row: Value = json!({"key": key, "__typename": "GqlFollowed", "name": name});
        assert_eq!(
            (&event["id"], &event["data"]),
            (&json!("a"), &json!({"new": [row]})),
            "{event}"
        );
    }
    demo()
        .rows("demo", "insert into gql_split values (7)", json!({}))
        .await;
    let event = socket.receive().await;
    let row = json!([{"id": "7", "__typename": "GqlSplit"}]);
    assert_eq!(
        (&event["id"], &event["data"]),
        (&json!("b"), &json!({"GqlSplitMessageAdded": row})),
        "{event}"
    );
}
