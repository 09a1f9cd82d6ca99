//! Tests errors below GraphQL, and their codes (API.md, "Errors of GraphQL").

use reqwest::Method;
use serde_json::{Value, json};

use crate::graphql::{
    PUBLIC, ask, ask_with_deadline, data, error, has_no_data, run, settled, wait_for_type,
};
use crate::service::{demo, eventually};

async fn count(sql: &str) -> i64 {
    let row = demo().admin().await.query_one(sql, &[]).await.unwrap();
    row.get(0)
}

/// Creates a table whose rows fail in different ways.
async fn failing() {
    run(
        "create table if not exists gql_failing (id int primary key, how text);
         create or replace function gql_fail() returns trigger language plpgsql as $$
         begin
             raise exception using errcode = new.how, message = 'as ' || new.how,
                 detail = 'a detail', hint = 'a hint', column = 'how', table = 'gql_failing',
                 constraint = 'gql_how', schema = 'public';
         end $$;
         create or replace trigger gql_fail before insert on gql_failing
             for each row execute function gql_fail();
         alter table gql_failing owner to demo",
    )
    .await;
    wait_for_type("GqlFailing").await;
}

#[tokio::test]
async fn every_sqlstate_has_its_code_and_shows_what_postgresql_says() {
    failing().await;
    for (sqlstate, code) in [
        ("22012", "BAD_USER_INPUT"),
        ("P0001", "BAD_USER_INPUT"),
        ("MY001", "BAD_USER_INPUT"),
        ("0A000", "BAD_USER_INPUT"),
        ("44000", "CONSTRAINT_VIOLATION"),
        ("23000", "CONSTRAINT_VIOLATION"),
        ("23P01", "CONSTRAINT_VIOLATION"),
        ("23503", "CONSTRAINT_VIOLATION"),
        ("42501", "FORBIDDEN"),
        ("25006", "FORBIDDEN"),
        ("28000", "FORBIDDEN"),
        ("40001", "CONFLICT"),
        ("40P01", "CONFLICT"),
        ("55P03", "CONFLICT"),
        ("57014", "TIMEOUT"),
        ("54000", "TOO_COMPLEX"),
    ] {
        let query = "mutation($d: JSON) {\n  x: insertGqlFailing(data: $d) { id } }";
        let error = error("demo", query, json!({"d": {"id": 1, "how": sqlstate}})).await;
        let message = format!("as {sqlstate}");
        assert_eq!(
            error,
            json!({
                "message": message, "locations": [{"line": 2, "column": 3}], "path": ["x"],
                "extensions": {
                    "code": code, "sqlstate": sqlstate, "table": "gql_failing", "column": "how",
                    "constraint": "gql_how", "detail": "a detail", "hint": "a hint",
                },
            })
        );
    }
}

/// A failed statement whose session survives affects no other field, whatever its SQLSTATE is. If
/// its message may name hosts or files, only the code is reported.
#[tokio::test]
async fn a_statement_that_the_database_cannot_run_fails_alone() {
    failing().await;
    run("create or replace function gql_trouble(how text) returns int language plpgsql as $$
         begin raise exception using errcode = how, message = 'as ' || how, hint = 'ask db-7'; end $$;
         create or replace view gql_troubled as select h as id, gql_trouble(h) as n
             from unnest(array['XX000', '58030', 'F0000', '53200', '08001', '57P01', '57P03']) h;
         alter view gql_troubled owner to demo")
    .await;
    wait_for_type("GqlTroubled").await;
    for (sqlstate, reported) in [
        ("XX000", true),
        ("58030", true),
        ("F0000", true),
        ("53200", false),
        ("08001", false),
        ("57P01", false),
        ("57P03", false),
    ] {
        let message = format!("as {sqlstate}");
        let message = if reported {
            &*message
        } else {
            "the database cannot do this now"
        };
        let mut extensions = json!({"code": "INTERNAL_SERVER_ERROR", "sqlstate": sqlstate});
        if reported {
            extensions["hint"] = json!("ask db-7");
        }
        let place = json!([{"line": 2, "column": 1}]);
        let expected = json!({"data": {"x": null, "y": [{"id": "1"}]}, "errors": [{
            "message": message, "locations": place, "path": ["x"], "extensions": extensions}]});
        let query = format!(
            "{{\nx: getGqlTroubled(where: {{id: \"{sqlstate}\"}}) {{ n }} y: getArtists(limit: 1) {{ id }} }}"
        );
        let found = ask(Some("demo"), &query, json!({})).await;
        assert_eq!(found, expected);
        let query = json!({"query": query});
        let many = json!([{"query": "{ __typename }"}, query, query]).to_string();
        let response = demo()
            .ask(Method::POST, PUBLIC, Some("demo"), Some(many))
            .await;
        let first = json!({"data": {"__typename": "Query"}});
        assert_eq!(
            (response.status, response.json()),
            (200, json!([first, expected, expected]))
        );
        let query = "mutation($d: JSON) { x: insertGqlFailing(data: $d) { id } }";
        let error = error("demo", query, json!({"d": {"id": 1, "how": sqlstate}})).await;
        assert_eq!(error["extensions"]["code"], "INTERNAL_SERVER_ERROR");
        assert_eq!(error["extensions"]["sqlstate"], sqlstate, "{error}");
        assert_eq!(error["path"], json!(["x"]), "{error}");
        let shown = error["extensions"].get("table").is_some();
        assert_eq!(shown, reported, "{error}");
    }
}

#[tokio::test]
async fn only_a_closed_session_fails_the_whole_document() {
    run(
        "create or replace view gql_ended as select 1 as id, pg_terminate_backend(pg_backend_pid());
         alter view gql_ended owner to demo",
    )
    .await;
    wait_for_type("GqlEnded").await;
    let query = json!({"query": "{ x: getGqlEnded { id pg_terminate_backend } y: __typename }"});
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("demo"), Some(query.to_string()))
        .await;
    assert_eq!(response.status, 503, "{response:?}");
    assert_eq!(response.header("retry-after"), "1");
    let response = response.json();
    assert_eq!(response.get("data"), None, "{response}");
    let extensions = json!({"code": "INTERNAL_SERVER_ERROR", "sqlstate": "57P01"});
    assert_eq!(
        response["errors"][0]["extensions"], extensions,
        "{response}"
    );
    let found = ask(Some("demo"), "{ getArtists(limit: 1) { id } }", json!({})).await;
    assert_eq!(found, json!({"data": {"getArtists": [{"id": "1"}]}}));
}

#[tokio::test]
async fn a_deadline_that_passed_is_a_timeout_and_ends_the_statement() {
    run(
        "create or replace view gql_slow as select 1 as id, pg_sleep(50)::text as slept;
         alter view gql_slow owner to demo",
    )
    .await;
    wait_for_type("GqlSlow").await;
    let response = ask_with_deadline("demo", "{ x: getGqlSlow { slept } }").await;
    assert_eq!(response["data"], json!({"x": null}));
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "TIMEOUT",
        "{response}"
    );
    assert_eq!(response["errors"][0]["path"], json!(["x"]), "{response}");
    eventually("the statement ends", || async {
        let running = "select count(*) from pg_stat_activity where state = 'active' \
                       and pid <> pg_backend_pid() and query like '%gql_slow%'";
        count(running).await == 0
    })
    .await;
}

/// Two mutations wait for each other's locks. Only one of them succeeds.
#[tokio::test]
async fn a_deadlock_is_a_conflict() {
    run(
        "create table if not exists gql_dead (id int primary key, n int default 0);
         create or replace function gql_meet() returns trigger language plpgsql as
         $$ begin perform pg_advisory_xact_lock_shared(8177); return new; end $$;
         create table if not exists gql_meeting (id int primary key, n int);
         create or replace trigger gql_meet before update on gql_meeting
             for each row execute function gql_meet();
         insert into gql_dead values (1), (2) on conflict do nothing;
         insert into gql_meeting values (1), (2) on conflict do nothing;
         alter table gql_dead owner to demo; alter table gql_meeting owner to demo",
    )
    .await;
    wait_for_type("GqlMeeting").await;
    let both = |first: u8, second: u8| {
        let query = format!(
            "mutation {{ a: updateGqlDead(id: {first}, data: {{n: 1}}) {{ id }} \
             m: updateGqlMeeting(id: {first}, data: {{n: 1}}) {{ id }} \
             b: updateGqlDead(id: {second}, data: {{n: 1}}) {{ id }} }}"
        );
        tokio::spawn(async move { ask(Some("demo"), &query, json!({})).await })
    };
    let holder = demo().admin().await;
    holder
        .batch_execute("select pg_advisory_lock(8177)")
        .await
        .unwrap();
    let (one, other) = (both(1, 2), both(2, 1));
    eventually("both hold their first row", || async {
        let waiting = "select count(*) from pg_locks where locktype = 'advisory' and objid = 8177 \
                       and not granted";
        count(waiting).await == 2
    })
    .await;
    holder
        .batch_execute("select pg_advisory_unlock(8177)")
        .await
        .unwrap();
    let responses = [one.await.unwrap(), other.await.unwrap()];
    let lost: Vec<_> = responses
        .iter()
        .filter(|response| response["data"].is_null())
        .collect();
    assert_eq!(lost.len(), 1, "{responses:?}");
    let error = &lost[0]["errors"][0];
    assert_eq!(error["extensions"]["code"], "CONFLICT", "{error}");
    assert_eq!(error["extensions"]["sqlstate"], "40P01", "{error}");
    assert_eq!(error["path"], json!(["b"]), "{error}");
}

/// A policy denies what the schema shows. An anonymous caller is asked for a token.
#[tokio::test]
async fn without_a_privilege_anonymous_callers_are_unauthenticated_and_users_forbidden() {
    run(
        "create table if not exists gql_guarded (id int primary key, secret int);
         alter table gql_guarded enable row level security;
         grant select, insert on gql_guarded to \"demo/guest\", \"demo/alice\";
         create or replace function gql_secret() returns int language sql as 'select 1';
         revoke execute on function gql_secret() from public;
         create or replace view gql_refused as select gql_guarded.id, gql_secret() as secret
             from gql_guarded right join (values (1)) v on true;
         grant select on gql_refused to \"demo/guest\", \"demo/alice\"",
    )
    .await;
    let insert = "mutation { insertGqlGuarded(data: {id: 1}) { id } }";
    let select = "{ getGqlRefused { secret } }";
    for query in [insert, select] {
        for (user, code) in [(None, "UNAUTHENTICATED"), (Some("alice"), "FORBIDDEN")] {
            let response = settled(user, query).await;
            let error = &response["errors"][0];
            assert_eq!(error["extensions"]["code"], code, "{response}");
            assert_eq!(error["extensions"]["sqlstate"], "42501", "{response}");
            assert!(has_no_data(&response["data"]), "{response}");
        }
    }
}

#[tokio::test]
async fn constraints_name_their_column_and_what_was_there() {
    run(
        "create table if not exists gql_named (id int primary key, name text not null unique, \
         at int4range, constraint gql_named_once exclude using gist (at with &&), \
         parent int references gql_named, positive int check (positive > 0)); \
         alter table gql_named owner to demo",
    )
    .await;
    wait_for_type("GqlNamed").await;
    data(
        "demo",
        "mutation { insertGqlNamed(data: {id: 1, name: \"a\", at: \"[1,5)\"}, onConflict: {columns: [\"id\"]}) { id } }",
        json!({}),
    )
    .await;
    for (row, sqlstate, constraint, column, detail) in [
        (
            json!({"id": 2}),
            "23502",
            Value::Null,
            json!("name"),
            "Failing row contains",
        ),
        (
            json!({"id": 1, "name": "b"}),
            "23505",
            json!("gql_named_pkey"),
            Value::Null,
            "Key (id)=(1) already exists.",
        ),
        (
            json!({"id": 2, "name": "a"}),
            "23505",
            json!("gql_named_name_key"),
            Value::Null,
            "Key (name)=(a) already exists.",
        ),
        (
            json!({"id": 2, "name": "b", "at": "[4,6)"}),
            "23P01",
            json!("gql_named_once"),
            Value::Null,
            "conflicts with existing key",
        ),
        (
            json!({"id": 2, "name": "b", "parent": 9}),
            "23503",
            json!("gql_named_parent_fkey"),
            Value::Null,
            "is not present in table",
        ),
        (
            json!({"id": 2, "name": "b", "positive": 0}),
            "23514",
            json!("gql_named_positive_check"),
            Value::Null,
            "Failing row contains",
        ),
    ] {
        let query = "mutation($d: JSON) { before: insertGqlNamed(data: {id: 77, name: \"z\"}) { id } x: insertGqlNamed(data: $d) { id } }";
        let error = error("demo", query, json!({"d": row})).await;
        let extensions = &error["extensions"];
        assert_eq!(extensions["code"], "CONSTRAINT_VIOLATION", "{error}");
        assert_eq!(extensions["sqlstate"], sqlstate, "{error}");
        assert_eq!(extensions["table"], "gql_named", "{error}");
        assert_eq!(extensions["constraint"], constraint, "{error}");
        assert_eq!(extensions["column"], column, "{error}");
        assert!(
            extensions["detail"].as_str().unwrap().contains(detail),
            "{error}"
        );
        assert_eq!(error["path"], json!(["x"]), "{error}");
        // The failed document has changed nothing.
        assert_eq!(count("select count(*) from gql_named").await, 1);
    }
}

/// PostgreSQL names the view only in its message.
#[tokio::test]
async fn a_row_that_its_view_would_not_show_names_the_view() {
    run(
        "create table if not exists gql_barred (id int primary key, n int);
         create or replace view gql_barring as select * from gql_barred where n > 0
             with cascaded check option;
         insert into gql_barred values (1, 1) on conflict do nothing;
         alter table gql_barred owner to demo; alter view gql_barring owner to demo",
    )
    .await;
    wait_for_type("GqlBarring").await;
    for query in [
        "mutation { before: insertGqlBarring(data: {id: 2, n: 2}) { id } x: insertGqlBarring(data: {id: 3, n: 0}) { id } }",
        "mutation { before: insertGqlBarring(data: {id: 2, n: 2}) { id } x: updateGqlBarring(where: {id: 1}, data: {n: -1}) { id } }",
    ] {
        let error = error("demo", query, json!({})).await;
        let extensions = &error["extensions"];
        assert_eq!(extensions["code"], "CONSTRAINT_VIOLATION", "{error}");
        assert_eq!(extensions["sqlstate"], "44000", "{error}");
        assert_eq!(extensions["table"], "gql_barring", "{error}");
        let detail = extensions["detail"].as_str().unwrap();
        assert!(detail.contains("Failing row contains"), "{error}");
        assert_eq!(error["path"], json!(["x"]), "{error}");
        assert_eq!(count("select count(*) from gql_barred").await, 1);
    }
}

/// The members of an error have the order of the contract.
#[tokio::test]
async fn the_members_of_an_error_have_their_order() {
    run(
        "create table if not exists gql_members (id int primary key);
         create or replace function gql_members_fail() returns trigger language plpgsql as $$
         begin
             raise exception using errcode = '23514', message = 'no', detail = 'a detail',
                 hint = 'a hint', column = 'id', table = 'gql_members', constraint = 'gql_how';
         end $$;
         create or replace trigger gql_members_fail before insert on gql_members
             for each row execute function gql_members_fail();
         alter table gql_members owner to demo",
    )
    .await;
    wait_for_type("GqlMembers").await;
    let body = json!({"query": "mutation { x: insertGqlMembers(data: {id: 1}) { id } }"});
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("demo"), Some(body.to_string()))
        .await;
    assert_eq!(
        response.text,
        concat!(
            r#"{"data":null,"errors":[{"message":"no","locations":[{"line":1,"column":12}],"path":["x"],"#,
            r#""extensions":{"code":"CONSTRAINT_VIOLATION","sqlstate":"23514","table":"gql_members","#,
            r#""column":"id","constraint":"gql_how","detail":"a detail","hint":"a hint"}}]}"#,
        )
    );
}

/// If a constraint fails at the end of the transaction, the whole document fails.
#[tokio::test]
async fn a_deferred_constraint_speaks_for_the_whole_document() {
    run(
        "create table if not exists gql_deferred_up (id int primary key);
         create table if not exists gql_deferred (id int primary key,
             up int references gql_deferred_up deferrable initially deferred);
         alter table gql_deferred_up owner to demo; alter table gql_deferred owner to demo",
    )
    .await;
    wait_for_type("GqlDeferred").await;
    // The referenced row may be inserted after the row that refers to it.
    let query = "mutation { a: insertGqlDeferred(data: {id: 1, up: 1}) { id } b: insertGqlDeferredUp(data: {id: 1}) { id } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"a": [{"id": "1"}], "b": [{"id": "1"}]})
    );
    for query in [
        "mutation { a: insertGqlDeferred(data: {id: 2, up: 9}) { id } }",
        "mutation { a: insertGqlDeferred(data: {id: 2}) { id } b: insertGqlDeferred(data: {id: 3, up: 9}) { id } }",
    ] {
        let response = ask(Some("demo"), query, json!({})).await;
        assert_eq!(response["data"], Value::Null, "{response}");
        let extensions = &response["errors"][0]["extensions"];
        assert_eq!(extensions["code"], "CONSTRAINT_VIOLATION", "{response}");
        assert_eq!(extensions["sqlstate"], "23503", "{response}");
        assert_eq!(count("select count(*) from gql_deferred").await, 1);
    }
}
