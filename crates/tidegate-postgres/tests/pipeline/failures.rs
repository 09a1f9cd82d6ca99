//! What fails in a pipeline, and what is left of it.

use std::time::{Duration, Instant};

use tidegate_sql::{Error, InputError, PipelineError, TransactionOutcome};
use tidegate_values::ValueError;

use super::{Plan, by_key, notes, stage, write, write_returning};
use crate::stage::Sql;

fn told(error: &PipelineError) -> (Option<usize>, Option<&str>, TransactionOutcome) {
    (error.step, error.error.sqlstate(), error.outcome)
}

#[tokio::test]
async fn an_error_names_its_statement_and_undoes_all() {
    let stage = stage("pipeline_errors").await;
    let owner = stage.owner();
    let by = |n: &str| Sql::new("select 1 / :n::int").set([n]);
    let divide = |returning: bool, at: usize| {
        let step = move |n: usize| match (n == at, returning) {
            (true, _) => by("0"),
            (_, true) => write_returning(u32::try_from(n).unwrap()),
            (_, false) => write(u32::try_from(n).unwrap()),
        };
        Plan::new((0..5).map(step))
    };
    for _ in 0..2 {
        for returning in [false, true] {
            for at in [0, 2, 4] {
                let error = divide(returning, at).run(&stage, &owner).await.unwrap_err();
                let expected = (Some(at), Some("22012"), TransactionOutcome::RolledBack);
                assert_eq!(told(&error), expected);
                assert_eq!(notes(&stage).await, "0");
            }
        }
        for at in [0, 2, 4] {
            let step = |n: usize| by(if n == at { "0" } else { "1" });
            let plan = Plan::new((0..5).map(step)).snapshot();
            let error = plan.run(&stage, &owner).await.unwrap_err();
            assert_eq!(told(&error).0, Some(at));
        }
        // What does not exist is told of the statement too.
        let missing = Plan::new([write(1), Sql::new("select * from nowhere"), write(2)]);
        let error = missing.run(&stage, &owner).await.unwrap_err();
        assert_eq!(told(&error).1, Some("42P01"));
        assert_eq!((told(&error).0, &*notes(&stage).await), (Some(1), "0"));
    }
    Plan::new([write(1), write(2)])
        .run(&stage, &owner)
        .await
        .unwrap();
    assert_eq!(notes(&stage).await, "2");
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_found_before_anything_runs() {
    let stage = stage("pipeline_values").await;
    let owner = stage.owner();
    let wrong = || Sql::new("insert into note values (:id, 'x')").set([r#"{"no":"number"}"#]);
    for _ in 0..2 {
        let error = Plan::new([write(1), wrong()]).run(&stage, &owner).await;
        let error = error.unwrap_err();
        assert_eq!(
            (error.step, error.outcome),
            (Some(1), TransactionOutcome::RolledBack)
        );
        assert!(
            matches!(
                error.error,
                Error::Input(InputError::Value(ValueError::InvalidValue { .. }))
            ),
            "{error:?}"
        );
    }
    // So far on that the first have run.
    let many = (0..20_000).map(write).chain([wrong()]);
    let error = Plan::new(many).run(&stage, &owner).await.unwrap_err();
    assert_eq!(error.step, Some(20_000));
    // What only PostgreSQL can read.
    let unreadable = Sql::new("insert into note values (:id, 'x')").set([r#""seven""#]);
    let error = Plan::new([write(1), unreadable]).run(&stage, &owner).await;
    let error = error.unwrap_err();
    assert_eq!(error.step, Some(1));
    assert_eq!(notes(&stage).await, "0");
}

#[tokio::test]
async fn values_that_do_not_fit_leave_nothing_prepared_behind() {
    let stage = stage("pipeline_misfits").await;
    let owner = stage.owner();
    let wrong = || Sql::new("select name from item where id = :id").set([r#"{"no":"number"}"#]);
    let prepared = || Sql::new("select count(*) from pg_prepared_statements");
    let mut counts = Vec::new();
    for _ in 0..20 {
        let plan = Plan::new([by_key(1), wrong()]).snapshot();
        let error = plan.run(&stage, &owner).await.unwrap_err();
        assert_eq!(error.step, Some(1));
        let good = Plan::new([by_key(1), by_key(2), prepared()]).snapshot();
        let rows = good.run(&stage, &owner).await.unwrap();
        counts.push(rows[2].values[0][0].parse::<u32>().unwrap());
        stage.rest().await;
    }
    assert!(counts.iter().all(|count| *count < 10), "{counts:?}");
}

#[tokio::test]
async fn a_refused_row_undoes_all_where_the_commit_waits() {
    let stage = stage("pipeline_refused").await;
    let owner = stage.owner();
    let plan = || Plan::new([write_returning(1), write_returning(2), write(3)]);
    for _ in 0..2 {
        let error = plan()
            .run_with(&[1, 0, 0], &stage, &owner)
            .await
            .unwrap_err();
        assert!(matches!(error.error, Error::ResultTooLarge(_)), "{error:?}");
        assert_eq!(
            (error.step, error.outcome),
            (Some(1), TransactionOutcome::RolledBack)
        );
        assert_eq!(notes(&stage).await, "0");
    }
    let together = plan().together();
    let error = together
        .run_with(&[1, 0, 0], &stage, &owner)
        .await
        .unwrap_err();
    assert_eq!(
        (error.step, error.outcome),
        (Some(1), TransactionOutcome::Committed)
    );
    assert_eq!(notes(&stage).await, "3");
    // And it says so only when it is true.
    let error = together
        .run_with(&[0, 0, 0], &stage, &owner)
        .await
        .unwrap_err();
    assert_eq!(
        told(&error),
        (Some(0), Some("23505"), TransactionOutcome::RolledBack)
    );
    let reads = Plan::new([by_key(1), by_key(2)]);
    let error = reads.run_with(&[1, 0], &stage, &owner).await.unwrap_err();
    assert_eq!(
        (error.step, error.outcome),
        (Some(1), TransactionOutcome::RolledBack)
    );
    assert_eq!(by_key(1).value(&stage, &owner).await, r#""item 1""#);
}

fn write_slowly() -> Sql {
    Sql::new("insert into note select 2, pg_sleep(60)::text as overdue")
}

#[tokio::test]
async fn a_passed_deadline_ends_the_pipeline_before_the_answer() {
    let stage = stage("pipeline_deadline").await;
    let owner = stage.owner();
    let sleep = || Sql::new("select pg_sleep(60) as overdue");
    for steps in [
        vec![write_returning(1), sleep(), write(2)],
        vec![by_key(1), sleep()],
        vec![write(1), write_slowly(), write(3)],
    ] {
        let mut plan = Plan::new(steps).ours();
        plan.options.deadline = Some(Instant::now() + Duration::from_millis(200));
        let began = Instant::now();
        let error = plan.run(&stage, &owner).await.unwrap_err();
        assert!(matches!(error.error, Error::Deadline), "{error:?}");
        // Also where the commit has been sent with the statements.
        assert_eq!(
            (error.step, error.outcome),
            (Some(1), TransactionOutcome::RolledBack)
        );
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(stage.running("overdue").await, 0);
        assert_eq!(notes(&stage).await, "0");
    }
}

#[tokio::test]
async fn a_pipeline_whose_caller_has_gone_leaves_nothing() {
    let stage = std::sync::Arc::new(stage("pipeline_dropped").await);
    let plan = Plan::new([
        write_returning(1),
        Sql::new("select pg_sleep(60) as abandoned"),
    ]);
    let plan = plan.ours();
    let task = tokio::spawn({
        let stage = stage.clone();
        async move { plan.run(&stage, &stage.owner()).await.is_ok() }
    });
    stage.wait_for_running("abandoned", 1).await;
    task.abort();
    stage.wait_for_running("abandoned", 0).await;
    stage.rest().await;
    assert_eq!(notes(&stage).await, "0");
}

#[tokio::test]
async fn a_deferred_constraint_is_told_of_the_whole() {
    let stage = stage("pipeline_deferred").await;
    let owner = stage.owner();
    let table = "create table once (a int unique deferrable initially deferred)";
    Sql::new(table).run(&stage, &owner).await.unwrap();
    let insert = |returning: &str| Sql::new(&format!("insert into once values (1) {returning}"));
    for returning in ["", "returning a"] {
        let plan = Plan::new([insert(returning), insert(returning)]);
        for plan in [
            plan.together(),
            Plan::new([insert(returning), insert(returning)]),
        ] {
            let error = plan.run(&stage, &owner).await.unwrap_err();
            let expected = (None, Some("23505"), TransactionOutcome::RolledBack);
            assert_eq!(told(&error), expected);
        }
    }
    let count = stage.value("select count(*)::text from once").await;
    assert_eq!(count, "0");
}

#[tokio::test]
async fn a_serialization_failure_names_its_statement() {
    let stage = stage("pipeline_serial").await;
    let owner = stage.owner();
    let conflict = "create function conflict() returns int language plpgsql as $$ begin
        raise exception 'could not serialize' using errcode = '40001'; end $$";
    Sql::new(conflict).run(&stage, &owner).await.unwrap();
    for first in [write(1), write_returning(1)] {
        let plan = Plan::new([first, by_key(1), Sql::new("select conflict()")]);
        let error = plan.run(&stage, &owner).await.unwrap_err();
        let expected = (Some(2), Some("40001"), TransactionOutcome::RolledBack);
        assert_eq!(told(&error), expected);
        assert_eq!(notes(&stage).await, "0");
    }
}

#[tokio::test]
async fn statements_whose_tables_have_changed_are_described_again() {
    let stage = stage("pipeline_stale").await;
    let owner = stage.owner();
    let all = || Sql::new("select * from note order by id");
    let plan = || Plan::new([all(), by_key(1), all()]);
    let write_plan = || Plan::new([write(1), all(), write(2)]);
    for (index, change) in [
        "add column more int",
        "add column most int",
        "drop column more",
    ]
    .into_iter()
    .enumerate()
    {
        let columns = |rows: &[crate::stage::Rows]| rows[0].columns.len();
        let before = columns(&plan().run(&stage, &owner).await.unwrap());
        // Behind the service's back.
        let change = format!("alter table note {change}");
        stage.admin.batch_execute(&change).await.unwrap();
        let after = columns(&plan().run(&stage, &owner).await.unwrap());
        assert_ne!(before, after, "{index}");
    }
    // A statement in front has been answered: the whole may be run again.
    write_plan().run(&stage, &owner).await.unwrap();
    stage
        .admin
        .batch_execute("delete from note; alter table note add column last int")
        .await
        .unwrap();
    let error = write_plan().run(&stage, &owner).await.unwrap_err();
    assert_eq!(
        told(&error),
        (Some(1), Some("40001"), TransactionOutcome::RolledBack)
    );
    assert_eq!(notes(&stage).await, "0");
    let rows = write_plan().run(&stage, &owner).await.unwrap();
    assert_eq!(rows[1].values.len(), 1);
    assert_eq!(notes(&stage).await, "2");
}

#[tokio::test]
async fn a_session_that_has_forgotten_its_statements_is_no_error() {
    let stage = stage("pipeline_deallocated").await;
    let owner = stage.owner();
    let function = "create function forget() returns int language plpgsql as
        $$ begin execute 'deallocate all'; return 1; end $$";
    Sql::new(function).run(&stage, &owner).await.unwrap();
    let plan = || Plan::new([by_key(1), by_key(2)]).snapshot();
    for _ in 0..3 {
        plan().run(&stage, &owner).await.unwrap();
        let forget = Sql::new("select forget()");
        assert_eq!(forget.value(&stage, &owner).await, "1");
        stage.rest().await;
        let rows = plan().run(&stage, &owner).await.unwrap();
        assert_eq!(rows[1].values, [[r#""item 2""#]]);
    }
}

#[tokio::test]
async fn what_is_out_of_date_elsewhere_never_writes_twice() {
    let stage = stage("pipeline_twice").await;
    let owner = stage.owner();
    let table = Sql::new("create table hits (at int)");
    table.run(&stage, &owner).await.unwrap();
    let plan = || {
        let hit = Sql::new("insert into hits values (1)");
        let mut plan = Plan::new([Sql::new("select * from note where id = 0"), hit]);
        plan.options.deadline = Some(Instant::now() + Duration::from_secs(20));
        plan
    };
    plan().run(&stage, &owner).await.unwrap();
    // Another connection knows nothing but what was learnt on this one.
    let change = "alter table note alter column text type int using 0;
        select pg_terminate_backend(pid) from pg_stat_activity
            where datname = 'pipeline_twice' and pid <> pg_backend_pid() and usename = datname;
        delete from hits";
    stage.admin.batch_execute(change).await.unwrap();
    let mut ran = plan().run(&stage, &owner).await;
    while ran.is_err() {
        assert_eq!(ran.unwrap_err().outcome, TransactionOutcome::RolledBack);
        ran = plan().run(&stage, &owner).await;
    }
    assert_eq!(
        ran.unwrap()[0].columns[1].r#type,
        tidegate_values::Type::INT4
    );
    let hits = stage.value("select count(*)::text from hits").await;
    assert_eq!(hits, "1");
}
