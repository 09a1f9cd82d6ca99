//! Connecting, preparing, running.

mod transaction;

use std::sync::Arc;
use std::time::Duration;

use tidegate_postgres::{Connection, ConnectionState, Postgres};
use tidegate_sql::{BoundStatement, Error, Executor, Mode, Principal, QueryOptions, RoleUse};
use tidegate_testkit::{config, service_connections};
use tidegate_wire::ConnectFault;

use crate::fixture::{CollectedRows, Fixture, Sql, password, startup};

#[tokio::test]
async fn a_role_logs_in_with_its_derived_password_by_tcp_and_by_socket() {
    let fixture = Fixture::new("login").await;
    let open = async |role: &str, password: &str, database: &str| {
        Connection::open(&fixture.tcp(), database, role, password, &startup()).await
    };
    let connection = open("login", &password("login"), "login").await.unwrap();
    assert_eq!(connection.state(), ConnectionState::Idle);
    let fault = async |role: &str, word: &str, database: &str| {
        open(role, word, database).await.unwrap_err().fault()
    };
    assert_eq!(fault("login", "wrong", "login").await, ConnectFault::Login);
    assert_eq!(fault("nobody", "wrong", "login").await, ConnectFault::Login);
    let owner = password("login");
    assert_eq!(
        fault("login", &owner, "nowhere").await,
        ConnectFault::NoDatabase
    );
    let who = Sql::new("select current_user || ' ' || session_user")
        .value(&fixture, &fixture.alice())
        .await;
    assert_eq!(who, r#""login/alice login/alice""#);
}

#[tokio::test]
async fn an_address_where_nothing_listens_is_an_outage() {
    let config = tidegate_wire::Config::from_url("postgresql://a:b@127.0.0.1:1/x").unwrap();
    let error = Connection::open(&config, "x", "a", "b", &startup())
        .await
        .unwrap_err();
    assert_eq!(error.fault(), ConnectFault::Unavailable);
    assert!(matches!(
        error.into_sql(Duration::from_secs(1)),
        Error::Unavailable { .. }
    ));
}

#[tokio::test]
async fn rows_and_columns_come_in_order() {
    let fixture = Fixture::new("rows").await;
    let rows =
        Sql::new("select i as n, 'x' || i as t, null::int as z from generate_series(1, 3) i")
            .run(&fixture, &fixture.owner())
            .await
            .unwrap();
    let names: Vec<_> = rows
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["n", "t", "z"]);
    assert_eq!(rows.values[2], ["3", r#""x3""#, "null"]);
    assert_eq!(rows.affected, None);
    let none = Sql::new("select 1 as a where false")
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!((none.columns.len(), none.values.len()), (1, 0));
}

#[tokio::test]
async fn a_statement_is_prepared_once_under_a_name_that_tells_nothing() {
    let fixture = Fixture::new("prepared").await;
    let owner = fixture.owner();
    for _ in 0..3 {
        Sql::new("select 42 as answer")
            .run(&fixture, &owner)
            .await
            .unwrap();
        fixture.rest().await;
    }
    let query = "select name from pg_prepared_statements where statement like 'select 42%'";
    let rows = Sql::new(query).run(&fixture, &owner).await.unwrap().values;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0][0].len() > 16, "{rows:?}");
}

#[tokio::test]
async fn a_prepared_statement_that_is_gone_is_prepared_again() {
    let fixture = Fixture::new("gone_statement").await;
    let owner = fixture.owner();
    let query = || Sql::new("select 42 as answer").value(&fixture, &owner);
    assert_eq!(query().await, "42");
    let block = "do $$ begin execute 'deallocate all'; end $$";
    Sql::new(block).run(&fixture, &owner).await.unwrap();
    assert_eq!(query().await, "42");
}

#[tokio::test]
async fn a_definition_that_changes_between_two_executions_is_seen_and_no_error() {
    let fixture = Fixture::new("redefined").await;
    let owner = fixture.owner();
    let run = async |q: &str| Sql::new(q).run(&fixture, &owner).await.unwrap();
    run("create table t (a int)").await;
    run("insert into t values (1)").await;
    run("grant select on t to public").await;
    for (login, column) in [(fixture.owner(), "b"), (fixture.guest(), "c")] {
        let all = async || {
            Sql::new("select * from t")
                .run(&fixture, &login)
                .await
                .unwrap()
        };
        let before = all().await.columns.len();
        // The definition is changed by this service, and by another client.
        run(&format!(
            "alter table t add column {column} text default 'x'"
        ))
        .await;
        assert_eq!(all().await.columns.len(), before + 1);
        fixture
            .admin
            .batch_execute("alter table t alter column a type text")
            .await
            .unwrap();
        assert_eq!(all().await.values[0][0], r#""1""#);
        fixture
            .admin
            .batch_execute("alter table t alter column a type int using a::int")
            .await
            .unwrap();
        assert_eq!(all().await.values[0][0], "1");
    }
}

#[tokio::test]
async fn a_definition_that_changes_before_a_transaction_is_no_error_there() {
    let fixture = Fixture::new("redefined_tx").await;
    let owner = fixture.owner();
    let all = Sql::new("select * from t");
    fixture
        .admin
        .batch_execute("create table t (a int); grant all on t to public")
        .await
        .unwrap();
    all.clone().run(&fixture, &owner).await.unwrap();
    fixture
        .admin
        .batch_execute("alter table t add column b int")
        .await
        .unwrap();
    let options = QueryOptions::default();
    let mut transaction = fixture
        .users
        .begin(&owner, Mode::Snapshot, &options)
        .await
        .unwrap();
    let mut bound = all.bound.clone();
    bound.sets.push(Vec::new());
    let mut sink = CollectedRows::default();
    let completion = transaction.query(&bound, &mut sink).await.unwrap();
    assert_eq!(sink.rows(completion).columns.len(), 2);
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn an_error_has_its_fields_and_its_position_in_the_callers_text() {
    let fixture = Fixture::new("fields").await;
    let owner = fixture.owner();
    let rejection = async |sql: Sql| match sql.run(&fixture, &owner).await.unwrap_err() {
        Error::Rejected(rejection) => *rejection,
        other => panic!("{other:?}"),
    };
    let q = "select :alpha::int, :beta::int, nonsense";
    let error = rejection(Sql::new(q).set(["1", "2"])).await;
    assert_eq!(error.sqlstate, "42703");
    assert_eq!(
        error.position,
        Some(u32::try_from(q.find("nonsense").unwrap() + 1).unwrap())
    );
    Sql::new("create table t (a int constraint small check (a < 9))")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let error = rejection(Sql::new("insert into t values (10)")).await;
    assert_eq!(error.constraint.as_deref(), Some("small"));
    assert_eq!(error.table.as_deref(), Some("t"));
    assert!(error.detail.is_some());
}

#[tokio::test]
async fn notices_without_end_do_not_disturb() {
    let fixture = Fixture::new("notices").await;
    let block = "do $$ begin for i in 1..5000 loop raise notice 'line %', i; end loop; end $$";
    Sql::new(block)
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!(
        Sql::new("select 1").value(&fixture, &fixture.owner()).await,
        "1"
    );
}

#[tokio::test]
async fn a_row_of_many_megabytes_comes_whole() {
    let fixture = Fixture::new("long_row").await;
    let query = Sql::new("select repeat('é', 10000000) as long");
    assert_eq!(
        query.value(&fixture, &fixture.owner()).await.len(),
        20_000_002
    );
}

#[tokio::test]
async fn what_must_stand_alone_runs() {
    let fixture = Fixture::new("alone").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    Sql::new("vacuum t").run(&fixture, &owner).await.unwrap();
    Sql::new("create procedure p() language plpgsql as $$ begin commit; end $$")
        .run(&fixture, &owner)
        .await
        .unwrap();
    Sql::new("call p()").run(&fixture, &owner).await.unwrap();
}

#[tokio::test]
async fn a_description_runs_nothing() {
    let fixture = Fixture::new("described").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int, b text)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let insert = Sql::new("insert into t values (:a, :b) returning a as id");
    for login in [fixture.owner(), fixture.guest()] {
        fixture
            .admin
            .batch_execute("grant all on t to public")
            .await
            .unwrap();
        let description = fixture
            .users
            .describe(&login, &insert.bound, insert.options())
            .await
            .unwrap();
        let names: Vec<_> = description
            .parameters
            .iter()
            .map(tidegate_values::Type::name)
            .collect();
        assert_eq!(names, ["int4", "text"]);
        assert_eq!(description.columns[0].name, "id");
    }
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_key_is_read_by_the_owner_and_by_anonymous_callers() {
    let fixture = Fixture::new("by_key").await;
    fixture
        .admin
        .batch_execute(
            "create table t as select i as id, 'n' || i as name from generate_series(1, 100) i;
             grant select on t to public",
        )
        .await
        .unwrap();
    for login in [fixture.owner(), fixture.guest()] {
        for id in ["1", "50", "100"] {
            let query = Sql::new("select name from t where id = :id").set([id]);
            assert_eq!(query.value(&fixture, &login).await, format!(r#""n{id}""#));
        }
    }
    assert_eq!(fixture.guest().role_use, RoleUse::Anonymous);
}

fn statement(text: &str) -> BoundStatement {
    Sql::new(text).set([]).bound
}

#[tokio::test]
async fn the_principal_decides_on_whose_connection_a_statement_runs() {
    let fixture = Fixture::new("principal").await;
    let control = service_connections(config(&fixture.url(), "principal"));
    let postgres = Postgres::new(fixture.users.clone(), Arc::new(control));
    let executor: &dyn Executor = &postgres;
    let who = statement("select session_user");
    for (principal, expected) in [
        (Principal::Role(fixture.alice()), r#""principal/alice""#),
        (Principal::Control, r#""postgres""#),
    ] {
        let mut sink = CollectedRows::default();
        let options = QueryOptions::default();
        let completion = executor
            .query(&principal, &who, &options, &mut sink)
            .await
            .unwrap();
        assert_eq!(
            sink.rows(completion).values[0][0],
            expected,
            "{principal:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_keeps_a_bounded_number_of_short_statements() {
    let fixture = Fixture::new("bounded").await;
    let owner = fixture.owner();
    let long = format!("select length('{}') as long", "x".repeat(100_000));
    for _ in 0..2 {
        assert_eq!(Sql::new(&long).value(&fixture, &owner).await, "100000");
        fixture.rest().await;
    }
    for n in 0..200 {
        let query = Sql::new(&format!("select {n} as many"));
        assert_eq!(query.value(&fixture, &owner).await, n.to_string());
        fixture.rest().await;
    }
    let count = async |condition: &str| {
        let query = format!("select count(*) from pg_prepared_statements where {condition}");
        let count = Sql::new(&query).value(&fixture, &owner).await;
        fixture.rest().await;
        count.parse::<u32>().unwrap()
    };
    // The last evicted statement is closed only with the next pipeline, and the check of the reset
    // is also prepared.
    assert!((100..=130).contains(&count("true").await));
    assert_eq!(count("length(statement) > 50000").await, 0);
    assert_eq!(
        Sql::new("select 199 as many").value(&fixture, &owner).await,
        "199"
    );
}
