//! The arguments and the types of the fields that a table gives (wire.md 6).

use serde_json::json;

use crate::graphql::{data, known};
use crate::graphql_types::{TYPE, written};
use crate::service::demo;

#[tokio::test]
async fn the_fields_of_a_table_have_these_signatures() {
    let setup = "create table gql_signed (id uuid primary key, n int); comment on table gql_signed is 'Signed.'";
    for statement in setup.split("; ") {
        demo().rows("demo", statement, json!({})).await;
    }
    demo().rows("demo", "create table gql_signed_two (a int, b int, up uuid references gql_signed, primary key (a, b))", json!({})).await;
    known("GqlSignedTwo").await;
    let query = format!(
        "{{ q: __type(name: \"Query\") {{ fields {{ name args {{ name {TYPE} }} {TYPE} }} }} m: __type(name: \"Mutation\") {{ fields {{ name args {{ name {TYPE} }} {TYPE} }} }} s: __type(name: \"Subscription\") {{ fields {{ name args {{ name {TYPE} }} {TYPE} }} }} t: __type(name: \"GqlSigned\") {{ fields {{ name args {{ name {TYPE} }} {TYPE} }} }} }}"
    );
    let found = data("demo", &query, json!({})).await;
    let signature = |root: &str, name: &str| {
        let fields = found[root]["fields"].as_array().unwrap().iter();
        let field = fields.clone().find(|field| field["name"] == name)?;
        let arguments = field["args"].as_array().unwrap().iter();
        let mut arguments: Vec<_> = arguments
            .map(|argument| {
                format!(
                    "{}: {}",
                    argument["name"].as_str().unwrap(),
                    written(&argument["type"])
                )
            })
            .collect();
        arguments.sort();
        Some(format!(
            "({}): {}",
            arguments.join(", "),
            written(&field["type"])
        ))
    };
    for (root, name, expected) in [
        (
            "q",
            "getGqlSigned",
            Some("(id: ID, limit: Int, offset: Int, orderBy: JSON, where: JSON): [GqlSigned]"),
        ),
        (
            "q",
            "getGqlSignedTwo",
            Some("(limit: Int, offset: Int, orderBy: JSON, where: JSON): [GqlSignedTwo]"),
        ),
        (
            "q",
            "getGqlSignedAggregate",
            Some("(groupBy: [String!], where: JSON): [GqlSignedAggregate]"),
        ),
        (
            "m",
            "insertGqlSigned",
            Some("(data: JSON, objects: [JSON], onConflict: JSON): [GqlSigned]"),
        ),
        (
            "m",
            "updateGqlSigned",
            Some("(data: JSON, id: ID, where: JSON): [GqlSigned]"),
        ),
        (
            "m",
            "updateGqlSignedTwo",
            Some("(data: JSON, where: JSON): [GqlSignedTwo]"),
        ),
        (
            "m",
            "deleteGqlSigned",
            Some("(id: ID, where: JSON): [GqlSigned]"),
        ),
        (
            "s",
            "GqlSignedMessageAdded",
            Some("(where: JSON): [GqlSigned]"),
        ),
        (
            "s",
            "GqlSignedMessageUpdated",
            Some("(where: JSON): [GqlSigned]"),
        ),
        (
            "s",
            "GqlSignedMessageDeleted",
            Some("(where: JSON): [GqlSigned]"),
        ),
        (
            "t",
            "gqlSignedTwo",
            Some("(limit: Int, offset: Int, orderBy: JSON, where: JSON): [GqlSignedTwo]"),
        ),
        ("t", "n", Some("(): Int")),
        ("q", "getNothingOfThatName", None),
    ] {
        assert_eq!(signature(root, name).as_deref(), expected, "{name}");
    }
}
