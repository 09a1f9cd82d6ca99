//! Tests that a statement's change of name resolution does not affect other transactions.

use tidegate_sql::{Login, Mode, QueryOptions};

use crate::fixture::{CollectedRows, Fixture, Rows, Sql};

const SETUP: &str = "create schema other; grant usage on schema other to public;
    create table t (v timestamptz); create table other.t (v date);
    create table u (v timestamptz); create table other.u (v text);
    create type span as range (subtype = int4); create type other.span as range (subtype = date);
    create table triggering (a int);
    create function elsewhere() returns text language sql as $f$
        select set_config('search_path', 'other', true) $f$;
    create function wander() returns trigger language plpgsql as $f$ begin
        perform public.elsewhere(); return new; end $f$;
    create trigger wander before insert on triggering for each row execute function wander();
    grant all on t, other.t, u, other.u, triggering to public";

/// Statements that change the `search_path` for the rest of a transaction.
const WAYS: [&str; 5] = [
    "select set_config('search_path', 'other', true)",
    "select set_config('search_path', 'other', false)",
    "set search_path = other",
    "select elsewhere()",
    "insert into triggering values (1)",
];

const MOMENT: &str = "\"2026-01-02T03:04:05Z\"";
const DAY: &str = "\"2026-01-02\"";

fn insert(value: &str) -> Sql {
    Sql::new("insert into t values (:v)").set([value])
}

/// Runs statements in one transaction.
async fn together(fixture: &Fixture, login: &Login, statements: &[Sql]) -> Vec<Rows> {
    let options = QueryOptions::default();
    let begun = fixture.users.begin(login, Mode::ReadWrite, &options);
    let mut transaction = begun.await.unwrap();
    let mut responses = Vec::new();
    for statement in statements {
        let mut gathered = CollectedRows::default();
        let mut bound = statement.bound.clone();
        if bound.sets.is_empty() {
            bound.sets.push(Vec::new());
        }
        let completion = transaction.query(&bound, &mut gathered).await.unwrap();
        responses.push(gathered.rows(completion));
    }
    transaction.commit().await.unwrap();
    responses
}

/// The fixture, a login that keeps prepared statements, and one that does not.
async fn fixture(name: &str) -> (Fixture, [Login; 2]) {
    let fixture = Fixture::new(name).await;
    fixture.admin.batch_execute(SETUP).await.unwrap();
    let logins = [fixture.owner(), fixture.guest()];
    (fixture, logins)
}

#[tokio::test]
async fn a_table_of_another_schema_is_not_cached_for_the_initial_search_path() {
    let (fixture, logins) = fixture("names_learnt").await;
    for (login, way) in logins.iter().flat_map(|l| WAYS.map(|way| (l, way))) {
        together(&fixture, login, &[Sql::new(way), insert(DAY)]).await;
        for _ in 0..2 {
            insert(MOMENT).run(&fixture, login).await.unwrap();
        }
        let stored = fixture
            .value("select string_agg(distinct (v at time zone 'utc')::text, ',') from t")
            .await;
        assert_eq!(stored, "2026-01-02 03:04:05", "{way}");
        let stored = fixture.value("select string_agg(v::text, ',') from other.t");
        assert_eq!(stored.await, "2026-01-02", "{way}");
        let empty = "truncate t, other.t";
        fixture.admin.batch_execute(empty).await.unwrap();
        fixture.users.redefined(&login.database);
    }
}

#[tokio::test]
async fn a_cached_table_is_not_used_under_another_search_path() {
    let (fixture, logins) = fixture("names_known").await;
    let insert = || Sql::new("insert into u values (:v)").set([MOMENT]);
    // The text does not show how a trigger changes name resolution.
    let ways = &WAYS[..4];
    for (login, way) in logins
        .iter()
        .flat_map(|l| ways.iter().map(move |way| (l, *way)))
    {
        for _ in 0..2 {
            insert().run(&fixture, login).await.unwrap();
        }
        together(&fixture, login, &[Sql::new(way), insert()]).await;
        // A conversion by PostgreSQL would have printed the timestamp differently.
        let stored = fixture
            .value("select string_agg(v, ',') from other.u")
            .await;
        assert_eq!(stored, "2026-01-02T03:04:05Z", "{way}");
        fixture
            .admin
            .batch_execute("truncate other.u")
            .await
            .unwrap();
        fixture.users.redefined(&login.database);
    }
}

#[tokio::test]
async fn a_hint_names_what_it_names_where_it_stands() {
    let (fixture, logins) = fixture("names_hint").await;
    let typed = |value: &str| {
        Sql::new("select pg_typeof(:v)::text as t")
            .set([value])
            .hint("span")
    };
    let (numbers, days) = (r#"{"lower": 1}"#, r#"{"lower": "2026-01-02"}"#);
    for login in &logins {
        for way in &WAYS[..4] {
            let path = Sql::new(way);
            let responses = together(&fixture, login, &[path, typed(days)]).await;
            assert_eq!(responses[1].values, [["\"span\""]], "{way}");
            // In the other schema PostgreSQL would expect a date.
            assert_eq!(
                typed(numbers).value(&fixture, login).await,
                "\"span\"",
                "{way}"
            );
            let back = Sql::new("set search_path = public");
            let path = Sql::new(way);
            together(&fixture, login, &[path, back, typed(numbers)]).await;
        }
    }
}

#[tokio::test]
async fn a_hint_names_the_type_that_has_the_name_now() {
    let (fixture, logins) = fixture("names_type").await;
    let typed = |value: &str| Sql::new("select :v as v").set([value]).hint("kind");
    let kinds = [
        (
            "create type kind as range (subtype = int4)",
            r#"{"lower": 1}"#,
        ),
        (
            "create type kind as range (subtype = text)",
            r#"{"lower": "a"}"#,
        ),
        ("create domain kind as int4[]", "[1]"),
        ("create domain kind as text", "\"x\""),
        ("create type kind as enum ('b')", "\"b\""),
        ("create type kind as (a int4)", r#"{"a": 1}"#),
        (
            "create type kind as range (subtype = int8)",
            r#"{"lower": 5000000000}"#,
        ),
    ];
    let drop = "do $$ begin drop domain kind; exception when wrong_object_type then \
                drop type kind; when undefined_object then null; end $$";
    let told = |login: &Login| fixture.users.redefined(&login.database);
    for login in &logins {
        for (create, value) in kinds {
            // Another client changes the definition, and the service is notified.
            fixture.admin.batch_execute(drop).await.unwrap();
            fixture.admin.batch_execute(create).await.unwrap();
            told(login);
            for _ in 0..2 {
                let rows = typed(value).run(&fixture, login).await;
                assert!(rows.is_ok(), "{create}: {rows:?}");
            }
        }
        // The service need not be notified of a type that was replaced by one of the same kind,
        // because PostgreSQL refuses the old OID.
        for _ in 0..2 {
            fixture.admin.batch_execute(drop).await.unwrap();
            fixture.admin.batch_execute(kinds[0].0).await.unwrap();
            let rows = typed(kinds[0].1).run(&fixture, login).await;
            assert!(rows.is_ok(), "{rows:?}");
        }
        fixture.admin.batch_execute(drop).await.unwrap();
        told(login);
        let error = typed("1").run(&fixture, login).await.unwrap_err();
        assert!(error.to_string().contains("kind"), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_type_in_a_text_is_no_changed_definition() {
    let (fixture, logins) = fixture("names_wrong").await;
    for login in &logins {
        let wrong = || Sql::new("select :v, null::nowhere").set(["1"]).hint("int4");
        assert_eq!(wrong().refusal(&fixture, login).await, "42704");
        let options = QueryOptions::default();
        let begun = fixture.users.begin(login, Mode::ReadWrite, &options);
        let mut transaction = begun.await.unwrap();
        let (wrong, mut rows) = (wrong(), CollectedRows::default());
        let refused = transaction.query(&wrong.bound, &mut rows).await;
        assert_eq!(refused.unwrap_err().sqlstate(), Some("42704"));
    }
}
