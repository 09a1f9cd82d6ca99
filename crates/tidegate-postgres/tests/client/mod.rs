//! Connecting, preparing, running.

mod transaction;

use std::sync::Arc;
use std::time::Duration;

use tidegate_postgres::{Condition, Connection, Postgres};
use tidegate_service::Control;
use tidegate_sql::{
    BoundStatement, DatabaseName, Error, Executor, Mode, Principal, QueryOptions, RoleUse,
};
use tidegate_wire::ConnectFault;
use tidegate_wire::backoff::Jitter;

use crate::stage::{Gathered, Sql, Stage, password, pins};

#[tokio::test]
async fn a_role_logs_in_with_its_derived_password_by_tcp_and_by_socket() {
    let stage = Stage::new("login").await;
    let open = async |role: &str, password: &str, database: &str| {
        Connection::open(&stage.tcp(), database, role, password, &pins()).await
    };
    let connection = open("login", &password("login"), "login").await.unwrap();
    assert_eq!(connection.condition(), Condition::Ready);
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
        .value(&stage, &stage.alice())
        .await;
    assert_eq!(who, r#""login/alice login/alice""#);
}

#[tokio::test]
async fn an_address_where_nothing_listens_is_an_outage() {
    let config = tidegate_wire::Config::from_url("postgresql://a:b@127.0.0.1:1/x").unwrap();
    let error = Connection::open(&config, "x", "a", "b", &pins())
        .await
        .unwrap_err();
    assert_eq!(error.fault(), ConnectFault::Away);
    assert!(matches!(
        error.into_sql(Duration::from_secs(1)),
        Error::Unavailable { .. }
    ));
}

#[tokio::test]
async fn rows_and_columns_come_in_order() {
    let stage = Stage::new("rows").await;
    let rows =
        Sql::new("select i as n, 'x' || i as t, null::int as z from generate_series(1, 3) i")
            .run(&stage, &stage.owner())
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
        .run(&stage, &stage.owner())
        .await
        .unwrap();
    assert_eq!((none.columns.len(), none.values.len()), (1, 0));
}

#[tokio::test]
async fn a_statement_is_prepared_once_under_a_name_that_tells_nothing() {
    let stage = Stage::new("prepared").await;
    let owner = stage.owner();
    for _ in 0..3 {
        Sql::new("select 42 as answer")
            .run(&stage, &owner)
            .await
            .unwrap();
        stage.rest().await;
    }
    let query = "select name from pg_prepared_statements where statement like 'select 42%'";
    let rows = Sql::new(query).run(&stage, &owner).await.unwrap().values;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(rows[0][0].len() > 16, "{rows:?}");
}

#[tokio::test]
async fn a_prepared_statement_that_is_gone_is_prepared_again() {
    let stage = Stage::new("gone_statement").await;
    let owner = stage.owner();
    let query = || Sql::new("select 42 as answer").value(&stage, &owner);
    assert_eq!(query().await, "42");
    let block = "do $$ begin execute 'deallocate all'; end $$";
    Sql::new(block).run(&stage, &owner).await.unwrap();
    assert_eq!(query().await, "42");
}

#[tokio::test]
async fn a_definition_that_changes_between_two_executions_is_seen_and_no_error() {
    let stage = Stage::new("redefined").await;
    let owner = stage.owner();
    let run = async |q: &str| Sql::new(q).run(&stage, &owner).await.unwrap();
    run("create table t (a int)").await;
    run("insert into t values (1)").await;
    run("grant select on t to public").await;
    for (login, column) in [(stage.owner(), "b"), (stage.guest(), "c")] {
        let all = async || {
            Sql::new("select * from t")
                .run(&stage, &login)
                .await
                .unwrap()
        };
        let before = all().await.columns.len();
        // By this service, and by somebody else.
        run(&format!(
            "alter table t add column {column} text default 'x'"
        ))
        .await;
        assert_eq!(all().await.columns.len(), before + 1);
        stage
            .admin
            .batch_execute("alter table t alter column a type text")
            .await
            .unwrap();
        assert_eq!(all().await.values[0][0], r#""1""#);
        stage
            .admin
            .batch_execute("alter table t alter column a type int using a::int")
            .await
            .unwrap();
        assert_eq!(all().await.values[0][0], "1");
    }
}

#[tokio::test]
async fn a_definition_that_changes_before_a_transaction_is_no_error_there() {
    let stage = Stage::new("redefined_tx").await;
    let owner = stage.owner();
    let all = Sql::new("select * from t");
    stage
        .admin
        .batch_execute("create table t (a int); grant all on t to public")
        .await
        .unwrap();
    all.clone().run(&stage, &owner).await.unwrap();
    stage
        .admin
        .batch_execute("alter table t add column b int")
        .await
        .unwrap();
    let options = QueryOptions::default();
    let mut transaction = stage
        .roles
        .begin(&owner, Mode::Snapshot, &options)
        .await
        .unwrap();
    let mut bound = all.bound.clone();
    bound.sets.push(Vec::new());
    let mut sink = Gathered::default();
    let completion = transaction.query(&bound, &mut sink).await.unwrap();
    assert_eq!(sink.rows(completion).columns.len(), 2);
    transaction.commit().await.unwrap();
}

#[tokio::test]
async fn an_error_has_its_fields_and_its_position_in_the_callers_text() {
    let stage = Stage::new("fields").await;
    let owner = stage.owner();
    let rejection = async |sql: Sql| match sql.run(&stage, &owner).await.unwrap_err() {
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
        .run(&stage, &owner)
        .await
        .unwrap();
    let error = rejection(Sql::new("insert into t values (10)")).await;
    assert_eq!(error.constraint.as_deref(), Some("small"));
    assert_eq!(error.table.as_deref(), Some("t"));
    assert!(error.detail.is_some());
}

#[tokio::test]
async fn notices_without_end_do_not_disturb() {
    let stage = Stage::new("notices").await;
    let block = "do $$ begin for i in 1..5000 loop raise notice 'line %', i; end loop; end $$";
    Sql::new(block).run(&stage, &stage.owner()).await.unwrap();
    assert_eq!(
        Sql::new("select 1").value(&stage, &stage.owner()).await,
        "1"
    );
}

#[tokio::test]
async fn a_row_of_many_megabytes_comes_whole() {
    let stage = Stage::new("long_row").await;
    let query = Sql::new("select repeat('é', 10000000) as long");
    assert_eq!(query.value(&stage, &stage.owner()).await.len(), 20_000_002);
}

#[tokio::test]
async fn what_must_stand_alone_runs() {
    let stage = Stage::new("alone").await;
    let owner = stage.owner();
    Sql::new("create table t (a int)")
        .run(&stage, &owner)
        .await
        .unwrap();
    Sql::new("vacuum t").run(&stage, &owner).await.unwrap();
    Sql::new("create procedure p() language plpgsql as $$ begin commit; end $$")
        .run(&stage, &owner)
        .await
        .unwrap();
    Sql::new("call p()").run(&stage, &owner).await.unwrap();
}

#[tokio::test]
async fn a_description_runs_nothing() {
    let stage = Stage::new("described").await;
    let owner = stage.owner();
    Sql::new("create table t (a int, b text)")
        .run(&stage, &owner)
        .await
        .unwrap();
    let insert = Sql::new("insert into t values (:a, :b) returning a as id");
    for login in [stage.owner(), stage.guest()] {
        stage
            .admin
            .batch_execute("grant all on t to public")
            .await
            .unwrap();
        let description = stage
            .roles
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
            .value(&stage, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_key_is_read_in_one_round_trip_by_the_owner_and_by_strangers() {
    let stage = Stage::new("by_key").await;
    stage
        .admin
        .batch_execute(
            "create table t as select i as id, 'n' || i as name from generate_series(1, 100) i;
             grant select on t to public",
        )
        .await
        .unwrap();
    for login in [stage.owner(), stage.guest()] {
        for id in ["1", "50", "100"] {
            let query = Sql::new("select name from t where id = :id").set([id]);
            assert_eq!(query.value(&stage, &login).await, format!(r#""n{id}""#));
        }
    }
    assert_eq!(stage.guest().role_use, RoleUse::Anonymous);
}

fn statement(text: &str) -> BoundStatement {
    let mut bound = Sql::new(text).bound;
    bound.sets.push(Vec::new());
    bound
}

#[tokio::test]
async fn the_principal_decides_on_whose_connection_a_statement_runs() {
    let stage = Stage::new("principal").await;
    let mut config = stage.tcp();
    config.control_database = DatabaseName::new("principal");
    let control = Control::new(Arc::new(config), Jitter::none()).unwrap();
    let postgres = Postgres::new(stage.roles.clone(), Arc::new(control));
    let executor: &dyn Executor = &postgres;
    let who = statement("select session_user");
    for (principal, expected) in [
        (Principal::Role(stage.alice()), r#""principal/alice""#),
        (Principal::Control, r#""postgres""#),
    ] {
        let mut sink = Gathered::default();
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
    let stage = Stage::new("bounded").await;
    let owner = stage.owner();
    let long = format!("select length('{}') as long", "x".repeat(100_000));
    for _ in 0..2 {
        assert_eq!(Sql::new(&long).value(&stage, &owner).await, "100000");
        stage.rest().await;
    }
    for n in 0..200 {
        let query = Sql::new(&format!("select {n} as many"));
        assert_eq!(query.value(&stage, &owner).await, n.to_string());
        stage.rest().await;
    }
    let count = async |condition: &str| {
        let query = format!("select count(*) from pg_prepared_statements where {condition}");
        let count = Sql::new(&query).value(&stage, &owner).await;
        stage.rest().await;
        count.parse::<u32>().unwrap()
    };
    // The one evicted last is closed with the next, and the check of the reset is there.
    assert!((100..=130).contains(&count("true").await));
    assert_eq!(count("length(statement) > 50000").await, 0);
    assert_eq!(
        Sql::new("select 199 as many").value(&stage, &owner).await,
        "199"
    );
}
