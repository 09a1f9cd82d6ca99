//! Parameter sets, transactions and snapshots on one connection.

use std::time::Duration;

use tidegate_sql::{Error, InputError, Mode, QueryOptions};
use tidegate_values::ValueError;

use super::statement;
use crate::fixture::{CollectedRows, Fixture, Sql};

#[tokio::test]
async fn written_rows_are_counted_over_all_sets() {
    let fixture = Fixture::new("counted").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int, b text)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let insert = Sql::new("insert into t values (:a, :b) returning b")
        .set(["1", r#""x""#])
        .set(["2", "null"])
        .set(["3", r#""z""#]);
    let rows = insert.run(&fixture, &owner).await.unwrap();
    assert_eq!(rows.affected, Some(3));
    assert_eq!(rows.values, [[r#""x""#], ["null"], [r#""z""#]]);
    let update = Sql::new("update t set b = 'y' where a > :a").set(["1"]);
    assert_eq!(
        update.run(&fixture, &owner).await.unwrap().affected,
        Some(2)
    );
    let select = Sql::new("select a from t where a = :a")
        .set(["1"])
        .set(["3"])
        .set(["9"]);
    let rows = select.run(&fixture, &owner).await.unwrap();
    assert_eq!(
        (rows.affected, rows.values),
        (None, vec![vec!["1".to_owned()], vec!["3".to_owned()]])
    );
}

#[tokio::test]
async fn a_set_that_fails_takes_all_with_it() {
    let fixture = Fixture::new("all_or_none").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int primary key)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let insert = || Sql::new("insert into t values (:a)");
    let doubled = insert().set(["1"]).set(["2"]).set(["1"]);
    assert_eq!(doubled.refusal(&fixture, &owner).await, "23505");
    // The invalid set comes so late that the first sets have run when it is encoded.
    let mut late = insert();
    for _ in 0..20_000 {
        let next = late.bound.sets.len().to_string();
        late = late.set([&next]);
    }
    let error = late
        .set([r#"{"no":"number"}"#])
        .run(&fixture, &owner)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Input(InputError::Value(ValueError::InvalidValue { place, .. }))
            if place == "params[20000].a"),
        "{error:?}"
    );
    let count = Sql::new("select count(*) from t")
        .value(&fixture, &owner)
        .await;
    assert_eq!(count, "0");
}

#[tokio::test]
async fn a_hundred_thousand_sets_with_long_results_do_not_block_either_side() {
    let fixture = Fixture::new("many_sets").await;
    let mut query = Sql::new("select :n::int, repeat('x', 200)").set(["0"]);
    query.bound.sets = (0..100_000_u32)
        .map(|n| vec![tidegate_values::Parameter::Json(n.to_string().into())])
        .collect();
    let rows = query
        .within(Duration::from_mins(1))
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!(rows.values.len(), 100_000);
    assert_eq!(rows.values[99_999][0], "99999");
}

#[tokio::test]
async fn a_deferred_constraint_speaks_before_the_response() {
    let fixture = Fixture::new("deferred").await;
    let owner = fixture.owner();
    let q = "create table t (a int unique deferrable initially deferred)";
    Sql::new(q).run(&fixture, &owner).await.unwrap();
    let twice = Sql::new("insert into t values (1), (1)");
    assert_eq!(twice.clone().refusal(&fixture, &owner).await, "23505");
    let options = QueryOptions::default();
    let mut transaction = fixture
        .users
        .begin(&owner, Mode::ReadWrite, &options)
        .await
        .unwrap();
    let mut bound = twice.bound;
    bound.sets.push(Vec::new());
    transaction
        .query(&bound, &mut CollectedRows::default())
        .await
        .unwrap();
    assert_eq!(
        transaction.commit().await.unwrap_err().sqlstate(),
        Some("23505")
    );
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_transaction_commits_or_leaves_nothing() {
    let fixture = Fixture::new("transaction").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let options = QueryOptions::default();
    let begin = || fixture.users.begin(&owner, Mode::ReadWrite, &options);
    let insert = statement("insert into t values (1)");
    let mut kept = begin().await.unwrap();
    kept.query(&insert, &mut CollectedRows::default())
        .await
        .unwrap();
    kept.query(&insert, &mut CollectedRows::default())
        .await
        .unwrap();
    kept.commit().await.unwrap();
    let mut dropped = begin().await.unwrap();
    dropped
        .query(&insert, &mut CollectedRows::default())
        .await
        .unwrap();
    drop(dropped);
    let mut failed = begin().await.unwrap();
    failed
        .query(&insert, &mut CollectedRows::default())
        .await
        .unwrap();
    let error = failed
        .query(&statement("select 1 / 0"), &mut CollectedRows::default())
        .await;
    assert_eq!(error.unwrap_err().sqlstate(), Some("22012"));
    assert_eq!(failed.commit().await.unwrap_err().sqlstate(), Some("25P02"));
    begin().await.unwrap().commit().await.unwrap();
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "2"
    );
}

#[tokio::test]
async fn a_transaction_that_has_failed_takes_nothing_more() {
    let fixture = Fixture::new("failed_tx").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let options = QueryOptions::default();
    // PostgreSQL does not see this error.
    let wrong = Sql::new("insert into t values (:a)")
        .set([r#"{"no":"number"}"#])
        .bound;
    let mut transaction = fixture
        .users
        .begin(&owner, Mode::ReadWrite, &options)
        .await
        .unwrap();
    let error = transaction
        .query(&wrong, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Input(_)), "{error:?}");
    let insert = statement("insert into t values (1)");
    let error = transaction
        .query(&insert, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("25P02"));
    assert_eq!(
        transaction.commit().await.unwrap_err().sqlstate(),
        Some("25P02")
    );
    assert_eq!(
        Sql::new("select count(*) from t")
            .value(&fixture, &owner)
            .await,
        "0"
    );
}

#[tokio::test]
async fn a_read_with_effects_is_never_run_twice() {
    let fixture = Fixture::new("effects").await;
    let define = async |r#type: &str| {
        let text = format!(
            "create function effect() returns {type} language sql
             as 'insert into public.log values (1) returning 1::{type}'"
        );
        fixture.admin.batch_execute(&text).await.unwrap();
    };
    let setup = "create table log (a int); grant all on log to public";
    fixture.admin.batch_execute(setup).await.unwrap();
    define("int").await;
    for login in [fixture.owner(), fixture.guest()] {
        let effect = || Sql::new("select effect()").value(&fixture, &login);
        assert_eq!(effect().await, "1");
        fixture
            .admin
            .batch_execute("drop function effect()")
            .await
            .unwrap();
        define("text").await;
        assert_eq!(effect().await, r#""1""#);
        fixture
            .admin
            .batch_execute("drop function effect()")
            .await
            .unwrap();
        define("int").await;
    }
    assert_eq!(fixture.value("select count(*)::text from log").await, "4");
}

#[tokio::test]
async fn a_snapshot_reads_and_never_writes() {
    let fixture = Fixture::new("snapshot").await;
    let owner = fixture.owner();
    Sql::new("create table t (a int)")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let options = QueryOptions::default();
    let mut snapshot = fixture
        .users
        .begin(&owner, Mode::Snapshot, &options)
        .await
        .unwrap();
    let count = statement("select count(*) from t");
    for _ in 0..2 {
        let mut sink = CollectedRows::default();
        let completion = snapshot.query(&count, &mut sink).await.unwrap();
        assert_eq!(sink.rows(completion).values[0][0], "0");
        fixture
            .admin
            .batch_execute("insert into t values (1)")
            .await
            .unwrap();
    }
    let write = snapshot
        .query(&statement("delete from t"), &mut CollectedRows::default())
        .await;
    assert_eq!(write.unwrap_err().sqlstate(), Some("25006"));
}
