//! Fields of a query that fail below its root fields (GraphQL, section 6.4.4): they are null, with an
//! error at each of their places, and the rest is there.

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::graphql::{ask, data, hurried, run, settled};

/// Tables whose rows the guest cannot read: their policies fail, or take their time.
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

/// Path, code and column of each error.
fn errors(answer: &Value) -> Vec<(Value, &str, u64)> {
    let errors = answer["errors"].as_array().unwrap().iter();
    errors
        .map(|error| {
            let code = error["extensions"]["code"].as_str().unwrap();
            let column = error["locations"][0]["column"].as_u64().unwrap();
            (error["path"].clone(), code, column)
        })
        .collect()
}

#[tokio::test]
async fn a_list_that_fails_is_null_in_every_row() {
    const WRONG: &str = "BAD_USER_INPUT";
    for (query, expected, lost) in [
        // PostgreSQL refuses the pattern: in a statement of its own, and in one with its rows.
        (
            "{ a: getArtists(orderBy: {id: asc}, where: {id: {lt: 3}}) { id albums(where: {title: {regex: \"(\"}}) { id } } b: __typename }",
            json!({"a": [{"id": "1", "albums": null}, {"id": "2", "albums": null}], "b": "Query"}),
            vec![
                (json!(["a", 0, "albums"]), WRONG, 64),
                (json!(["a", 1, "albums"]), WRONG, 64),
            ],
        ),
        (
            "{ a: getArtists(id: 1) { id albums(where: {title: {regex: \"(\"}}) { id } } }",
            json!({"a": [{"id": "1", "albums": null}]}),
            vec![(json!(["a", 0, "albums"]), WRONG, 29)],
        ),
        // Its neighbours, those below it and other root fields stay.
        (
            "{ a: getArtists(id: 1) { x: albums(where: {title: {regex: \"(\"}}) { tracks { id } } \
             y: albums(limit: 1, orderBy: {id: asc}) { id z: tracks(where: {title: {regex: \"(\"}}) { id } } } \
             b: getArtists(id: 1) { id } c: getArtists(where: {name: {regex: \"(\"}}) { id } }",
            json!({"a": [{"x": null, "y": [{"id": "1", "z": null}]}], "b": [{"id": "1"}], "c": null}),
            vec![
                (json!(["a", 0, "x"]), WRONG, 26),
                (json!(["a", 0, "y", 0, "z"]), WRONG, 129),
                (json!(["c"]), WRONG, 208),
            ],
        ),
        // What is refused before anything runs, also where no row would have shown it.
        (
            "{ a: getArtists(id: 1) { id albums(where: {nix: 1}) { id } } \
             b: getArtists(id: 0) { albums(where: {nix: 1}) { id } } c: getArtists(id: 1) { id } }",
            json!({"a": [{"id": "1", "albums": null}], "b": [], "c": [{"id": "1"}]}),
            vec![
                (json!(["a", 0, "albums"]), WRONG, 43),
                (Value::Null, WRONG, 99),
            ],
        ),
    ] {
        let answer = ask(Some("demo"), query, json!({})).await;
        assert_eq!(answer["data"], expected, "{query}: {answer}");
        assert_eq!(errors(&answer), lost, "{query}: {answer}");
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_null_where_there_is_a_key() {
    failing().await;
    let query = "{ a: getGqlBelowUser { id gqlBelowWrong { id gqlBelowOwner { id } } } }";
    let answer = ask(Some("alice"), query, json!({})).await;
    let rows = json!([{"id": "1", "gqlBelowWrong": null}, {"id": "2", "gqlBelowWrong": null}, {"id": "3", "gqlBelowWrong": null}]);
    assert_eq!(answer["data"]["a"], rows, "{answer}");
    let expected = [0, 2].map(|row| (json!(["a", row, "gqlBelowWrong"]), "FORBIDDEN", 27));
    assert_eq!(errors(&answer), expected, "{answer}");
    let extensions = &answer["errors"][0]["extensions"];
    assert_eq!(extensions["sqlstate"], "42501", "{answer}");
    assert_eq!(answer["errors"][0]["message"], "not you", "{answer}");
    // The other way round too, beside what can be read.
    let query = "{ getGqlBelowOwner { n w: gqlBelowWrong { id gqlBelowUser { id } } } getGqlBelowUser(id: 2) { id } }";
    let answer = ask(Some("alice"), query, json!({})).await;
    let rows = json!({"getGqlBelowOwner": [{"n": 1, "w": null}, {"n": 2, "w": null}], "getGqlBelowUser": [{"id": "2"}]});
    assert_eq!(answer["data"], rows, "{answer}");
    let expected = [0, 1].map(|row| (json!(["getGqlBelowOwner", row, "w"]), "FORBIDDEN", 24));
    assert_eq!(errors(&answer), expected, "{answer}");
}

#[tokio::test]
async fn a_deadline_takes_below_a_row_what_was_not_read_in_time() {
    failing().await;
    let query = "{ a: getGqlBelowOwner { n l: gqlBelowLate { id gqlBelowOwner { id } } } b: getGqlBelowOwner { id } }";
    let answer = hurried("alice", query).await;
    let rows = json!({"a": [{"n": 1, "l": null}, {"n": 2, "l": null}], "b": null});
    assert_eq!(answer["data"], rows, "{answer}");
    let expected = [
        (json!(["a", 0, "l"]), "TIMEOUT", 27),
        (json!(["a", 1, "l"]), "TIMEOUT", 27),
        (json!(["b"]), "TIMEOUT", 73),
    ];
    assert_eq!(errors(&answer), expected, "{answer}");
}

/// Each costs another reading, so that there is an end to it.
#[tokio::test]
async fn where_more_than_eight_fail_the_root_field_does() {
    for (number, fits) in [(8, true), (9, false)] {
        let fields: Vec<_> = (0..number)
            .map(|at| format!("f{at}: albums(where: {{title: {{regex: \"(\"}}}}) {{ id }} "))
            .collect();
        let fields = fields.concat();
        let query = format!("{{ a: getArtists(id: 1) {{ id {fields} }} b: __typename }}");
        let answer = ask(Some("demo"), &query, json!({})).await;
        assert_eq!(answer["data"]["a"].is_array(), fits, "{answer}");
        assert_eq!(answer["data"]["b"], "Query");
        let errors = errors(&answer);
        if fits {
            assert_eq!(errors.len(), number, "{answer}");
        } else {
            assert_eq!(errors[0].0, json!(["a"]), "{answer}");
            assert_eq!(errors.len(), 1, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_mutation_is_lost_as_a_whole() {
    let query = "mutation { x: updateArtists(id: 1, data: {name: \"gql below\"}) { id \
                 albums(where: {title: {regex: \"(\"}}) { id } } }";
    let answer = ask(Some("demo"), query, json!({})).await;
    assert_eq!(answer["data"], Value::Null, "{answer}");
    assert_eq!(errors(&answer)[0].0, json!(["x"]), "{answer}");
    let read = "{ getArtists(where: {name: \"gql below\"}) { id } }";
    assert_eq!(data("demo", read, json!({})).await["getArtists"], json!([]));
}
