//! Tests the arguments and types of a table's fields (API.md, "GraphQL").

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql::{data, wait_for_type};
use crate::graphql_types::{TYPE, written};
use crate::service::{demo, eventually};

#[tokio::test]
async fn the_fields_of_a_table_have_these_signatures() {
    let setup = "create table gql_signed (id uuid primary key, n int); comment on table gql_signed is 'Signed.'";
    for statement in setup.split("; ") {
        demo().rows("demo", statement, json!({})).await;
    }
    demo().rows("demo", "create table gql_signed_two (a int, b int, up uuid references gql_signed, primary key (a, b))", json!({})).await;
    wait_for_type("GqlSignedTwo").await;
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

/// Introspection accepts the whole query language, and describes its own types and the directives.
#[tokio::test]
async fn introspection_tells_of_itself_and_takes_the_whole_language() {
    let setup = "create table gql_introspected (id int primary key)";
    demo().rows("demo", setup, json!({})).await;
    wait_for_type("GqlIntrospected").await;
    let query = "query($no: Boolean = false) { \
        own: __type(name: \"__Directive\") { ...shape fields { name } } \
        kinds: __type(name: \"__TypeKind\") { ...shape enumValues { name } } \
        table: __type(name: \"GqlIntrospected\") { k: kind ...shape description @include(if: $no) \
            ... on __Type { __typename interfaces { name } possibleTypes { name } ofType { name } } \
            fields { n: name name @skip(if: true) } } \
        scalar: __type(name: \"Int\") { ...shape fields { name } } \
        none: __type(name: \"NoSuchType\") { name } \
        __schema { __typename queryType { name } mutationType { name } subscriptionType { name } \
            directives { name locations isRepeatable args { name defaultValue type { kind ofType { name } } } } } \
        } fragment shape on __Type { kind name }";
    let mut found = data("demo", query, json!({})).await;
    let directives = found["__schema"]["directives"].take();
    let named =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name})).collect() };
    assert_eq!(
        found,
        json!({
            "own": {
                "kind": "OBJECT", "name": "__Directive",
                "fields": named(&["name", "description", "isRepeatable", "locations", "args"]),
            },
            "kinds": {
                "kind": "ENUM", "name": "__TypeKind",
                "enumValues": named(&["SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM", "INPUT_OBJECT", "LIST", "NON_NULL"]),
            },
            "table": {
                "k": "OBJECT", "kind": "OBJECT", "name": "GqlIntrospected", "__typename": "__Type",
                "interfaces": [], "possibleTypes": null, "ofType": null, "fields": [{"n": "id"}],
            },
            "scalar": {"kind": "SCALAR", "name": "Int", "fields": null},
            "none": null,
            "__schema": {
                "__typename": "__Schema", "queryType": {"name": "Query"},
                "mutationType": {"name": "Mutation"}, "subscriptionType": {"name": "Subscription"},
                "directives": null,
            },
        })
    );
    let directive = |name: &str| {
        let mut all = directives.as_array().unwrap().iter();
        all.find(|directive| directive["name"] == name).cloned()
    };
    for name in ["include", "skip"] {
        let expected = json!({
            "name": name, "locations": ["FIELD", "FRAGMENT_SPREAD", "INLINE_FRAGMENT"], "isRepeatable": false,
            "args": [{"name": "if", "defaultValue": null, "type": {"kind": "NON_NULL", "ofType": {"name": "Boolean"}}}],
        });
        assert_eq!(directive(name), Some(expected), "{directives}");
    }
    let deprecated = directive("deprecated").unwrap();
    assert_eq!(
        deprecated["args"][0]["defaultValue"],
        "\"No longer supported\""
    );
    assert!(directive("specifiedBy").is_some(), "{directives}");
}

/// The SDL and the subscriptions depend on the role. Without privileges in a schema, the role
/// gets 404 for it.
#[tokio::test]
async fn a_role_reads_the_text_of_what_it_may_use() {
    let admin = demo().admin().await;
    let setup = "create schema gql_shown; create table gql_shown.t (id int primary key, open int, shut int); \
                 create table gql_shown.u (id int primary key); create table gql_shown.v (id int primary key)";
    admin.batch_execute(setup).await.unwrap();
    let sdl = async || {
        let path = "/api/graphql/schema/gql_shown/sdl";
        demo().ask(Method::GET, path, Some("alice"), None).await
    };
    let response = sdl().await;
    assert_eq!(response.status, 404, "{response:?}");
    assert!(response.json()["errors"].is_array(), "{response:?}");
    let grants = "grant usage on schema gql_shown to \"demo/alice\"; \
                  grant select (id, open) on gql_shown.t to \"demo/alice\"; \
                  grant delete on gql_shown.v to \"demo/alice\"";
    admin.batch_execute(grants).await.unwrap();
    eventually("alice may use the schema", || async {
        sdl().await.status == 200
    })
    .await;
    let text = sdl().await.text;
    for shown in [
        "type T {\n  id: ID!\n  open: Int\n}",
        "type V {",
        "\n  getT(",
        "\n  deleteV(",
        "\n  TMessageAdded(",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for hidden in [
        "shut", "type U", "getU", "getV", "insertT", "updateT", "deleteT", "UMessage", "VMessage",
    ] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
}
