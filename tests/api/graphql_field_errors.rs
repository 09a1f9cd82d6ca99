//! Tests fields that fail below root fields (GraphQL, section 6.4.4): the root field is null with
//! one error, and the rest is returned.

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::graphql::{ask, ask_with_deadline, data, run, settled};

/// Creates tables whose rows the guest cannot read, because their policies fail or are slow.
async fn failing() {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(async || {
        let setup = "
            create table gql_below_owner (id int primary key, n int);
            create table gql_below_wrong (id int primary key, n int, owner int references gql_below_owner);
            create table gql_below_late (id int primary key, owner int references gql_below_owner);
            create table gql_below_user (id int primary key, wrong int references gql_below_wrong);
            insert into gql_below_owner values (1, 1), (2, 2);
            insert into gql_below_wrong values (1, 1, 1), (2, 2, 1), (3, 3, 2);
            insert into gql_below_late values (1, 1), (2, 2);
            insert into gql_below_user values (1, 1), (2, null), (3, 3);
            create function gql_below_refuse(n int) returns bool language plpgsql stable as
                $$ begin raise exception using errcode = 'insufficient_privilege', message = 'not you'; end $$;
            alter table gql_below_wrong enable row level security;
            create policy gql_below_wrong on gql_below_wrong using (gql_below_refuse(n));
            alter table gql_below_late enable row level security;
            create policy gql_below_late on gql_below_late using (pg_sleep(50)::text is not null);
            grant select on gql_below_owner, gql_below_wrong, gql_below_late, gql_below_user to \"demo/alice\"";
        run(setup).await;
        let all = "{ a: __type(name: \"GqlBelowUser\") { name } getGqlBelowUser(limit: 0) { id } \
                   getGqlBelowOwner(limit: 0) { gqlBelowWrong { id } gqlBelowLate { id } } }";
        settled(Some("alice"), all).await;
    })
    .await;
}

/// The path, the code and the column of each error.
fn errors(response: &Value) -> Vec<(Value, &str, u64)> {
    let errors = response["errors"].as_array().unwrap().iter();
    errors
        .map(|error| {
            let code = error["extensions"]["code"].as_str().unwrap();
            let column = error["locations"][0]["column"].as_u64().unwrap();
            (error["path"].clone(), code, column)
        })
        .collect()
}

#[tokio::test]
async fn a_list_that_fails_takes_its_root_field() {
    const WRONG: &str = "BAD_USER_INPUT";
    for (query, expected, failed) in [
        // PostgreSQL refuses the pattern.
        (
            "{ a: getArtists(orderBy: {id: asc}, where: {id: {lt: 3}}) { id albums(where: {title: {regex: \"(\"}}) { id } } b: __typename }",
            json!({"a": null, "b": "Query"}),
            vec![(json!(["a"]), WRONG, 3)],
        ),
        // Other root fields are returned, whatever the order is.
        (
            "{ a: getArtists(id: 1) { x: albums(where: {title: {regex: \"(\"}}) { tracks { id } } } \
             b: getArtists(id: 1) { id albums(limit: 1, orderBy: {id: asc}) { id } } c: getArtists(where: {name: {regex: \"(\"}}) { id } }",
            json!({"a": null, "b": [{"id": "1", "albums": [{"id": "1"}]}], "c": null}),
            vec![(json!(["a"]), WRONG, 3), (json!(["c"]), WRONG, 158)],
        ),
        // An error that is found before anything runs has the location of the argument.
        (
            "{ a: getArtists(id: 1) { id albums(where: {nix: 1}) { id } } c: getArtists(id: 1) { id } }",
            json!({"a": null, "c": [{"id": "1"}]}),
            vec![(json!(["a"]), WRONG, 43)],
        ),
    ] {
        let response = ask(Some("demo"), query, json!({})).await;
        assert_eq!(response["data"], expected, "{query}: {response}");
        assert_eq!(errors(&response), failed, "{query}: {response}");
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_takes_its_root_field() {
    failing().await;
    let query = "{ a: getGqlBelowUser { id gqlBelowWrong { id gqlBelowOwner { id } } } }";
    let response = ask(Some("alice"), query, json!({})).await;
    assert_eq!(response["data"], json!({"a": null}), "{response}");
    assert_eq!(
        errors(&response),
        [(json!(["a"]), "FORBIDDEN", 3)],
        "{response}"
    );
    let extensions = &response["errors"][0]["extensions"];
    assert_eq!(extensions["sqlstate"], "42501", "{response}");
    assert_eq!(response["errors"][0]["message"], "not you", "{response}");
    // The same fields in the other order, together with fields that can be read.
    let query = "{ getGqlBelowOwner { n w: gqlBelowWrong { id gqlBelowUser { id } } } getGqlBelowUser(id: 2) { id } }";
    let response = ask(Some("alice"), query, json!({})).await;
    let rows = json!({"getGqlBelowOwner": null, "getGqlBelowUser": [{"id": "2"}]});
    assert_eq!(response["data"], rows, "{response}");
    let expected = [(json!(["getGqlBelowOwner"]), "FORBIDDEN", 3)];
    assert_eq!(errors(&response), expected, "{response}");
}

#[tokio::test]
async fn a_deadline_takes_the_root_fields_that_were_not_read_in_time() {
    failing().await;
    let query = "{ z: getGqlBelowOwner { n } a: getGqlBelowOwner { n l: gqlBelowLate { id gqlBelowOwner { id } } } b: getGqlBelowOwner { id } }";
    let response = ask_with_deadline("alice", query).await;
    let rows = json!({"z": [{"n": 1}, {"n": 2}], "a": null, "b": null});
    assert_eq!(response["data"], rows, "{response}");
    let expected = [(json!(["a"]), "TIMEOUT", 29), (json!(["b"]), "TIMEOUT", 99)];
    assert_eq!(errors(&response), expected, "{response}");
}

#[tokio::test]
async fn a_mutation_fails_as_a_whole() {
    let query = "mutation { x: updateArtists(id: 1, data: {name: \"gql below\"}) { id \
                 albums(where: {title: {regex: \"(\"}}) { id } } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(response["data"], Value::Null, "{response}");
    assert_eq!(errors(&response)[0].0, json!(["x"]), "{response}");
    let read = "{ getArtists(where: {name: \"gql below\"}) { id } }";
    assert_eq!(data("demo", read, json!({})).await["getArtists"], json!([]));
}
