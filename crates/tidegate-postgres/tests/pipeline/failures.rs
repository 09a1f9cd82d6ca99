//! Tests failures in pipelines, and what the pipelines leave.

use std::time::{Duration, Instant};

use tidegate_sql::{Error, InputError, PipelineError, TransactionOutcome};
use tidegate_values::ValueError;

use super::{Plan, by_key, fixture, notes, write, write_returning};
use crate::fixture::Sql;

fn step_of(error: &PipelineError) -> (Option<usize>, Option<&str>, TransactionOutcome) {
    (error.step, error.error.sqlstate(), error.outcome)
}

#[tokio::test]
async fn an_error_names_its_statement_and_undoes_all() {
    let fixture = fixture("pipeline_errors").await;
    let owner = fixture.owner();
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
                let error = divide(returning, at)
                    .run(&fixture, &owner)
                    .await
                    .unwrap_err();
                let expected = (Some(at), Some("22012"), TransactionOutcome::RolledBack);
                assert_eq!(step_of(&error), expected);
                assert_eq!(notes(&fixture).await, "0");
            }
        }
        for at in [0, 2, 4] {
            let step = |n: usize| by(if n == at { "0" } else { "1" });
            let plan = Plan::new((0..5).map(step)).snapshot();
            let error = plan.run(&fixture, &owner).await.unwrap_err();
            assert_eq!(step_of(&error).0, Some(at));
        }
        // A missing table is reported with its statement too.
        let missing = Plan::new([write(1), Sql::new("select * from nowhere"), write(2)]);
        let error = missing.run(&fixture, &owner).await.unwrap_err();
        assert_eq!(step_of(&error).1, Some("42P01"));
        assert_eq!((step_of(&error).0, &*notes(&fixture).await), (Some(1), "0"));
    }
    Plan::new([write(1), write(2)])
        .run(&fixture, &owner)
        .await
        .unwrap();
    assert_eq!(notes(&fixture).await, "2");
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_found_before_anything_runs() {
    let fixture = fixture("pipeline_values").await;
    let owner = fixture.owner();
    let wrong = || Sql::new("insert into note values (:id, 'x')").set([r#"{"no":"number"}"#]);
    for _ in 0..2 {
        let error = Plan::new([write(1), wrong()]).run(&fixture, &owner).await;
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
    // The invalid set comes so late that the first sets have run.
    let many = (0..20_000).map(write).chain([wrong()]);
    let error = Plan::new(many).run(&fixture, &owner).await.unwrap_err();
    assert_eq!(error.step, Some(20_000));
    // Only PostgreSQL can check this value.
    let unreadable = Sql::new("insert into note values (:id, 'x')").set([r#""seven""#]);
    let error = Plan::new([write(1), unreadable])
        .run(&fixture, &owner)
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.step, Some(1));
    assert_eq!(notes(&fixture).await, "0");
}

#[tokio::test]
async fn values_that_do_not_fit_leave_nothing_prepared_behind() {
    let fixture = fixture("pipeline_misfits").await;
    let owner = fixture.owner();
    let wrong = || Sql::new("select name from item where id = :id").set([r#"{"no":"number"}"#]);
    let prepared = || Sql::new("select count(*) from pg_prepared_statements");
    let mut counts = Vec::new();
    for _ in 0..20 {
        let plan = Plan::new([by_key(1), wrong()]).snapshot();
        let error = plan.run(&fixture, &owner).await.unwrap_err();
        assert_eq!(error.step, Some(1));
        let good = Plan::new([by_key(1), by_key(2), prepared()]).snapshot();
        let rows = good.run(&fixture, &owner).await.unwrap();
        counts.push(rows[2].values[0][0].parse::<u32>().unwrap());
        fixture.rest().await;
    }
    assert!(counts.iter().all(|count| *count < 10), "{counts:?}");
}

#[tokio::test]
async fn a_refused_row_undoes_all_where_the_commit_waits() {
    let fixture = fixture("pipeline_refused").await;
    let owner = fixture.owner();
    let plan = || Plan::new([write_returning(1), write_returning(2), write(3)]);
    for _ in 0..2 {
        let error = plan()
            .run_with(&[1, 0, 0], &fixture, &owner)
            .await
            .unwrap_err();
        assert!(matches!(error.error, Error::ResultTooLarge(_)), "{error:?}");
        assert_eq!(
            (error.step, error.outcome),
            (Some(1), TransactionOutcome::RolledBack)
        );
        assert_eq!(notes(&fixture).await, "0");
    }
    let together = plan().together();
    let error = together
        .run_with(&[1, 0, 0], &fixture, &owner)
        .await
        .unwrap_err();
    assert_eq!(
        (error.step, error.outcome),
        (Some(1), TransactionOutcome::Committed)
    );
    assert_eq!(notes(&fixture).await, "3");
    // The error reports the rollback only if it happened.
    let error = together
        .run_with(&[0, 0, 0], &fixture, &owner)
        .await
        .unwrap_err();
    assert_eq!(
        step_of(&error),
        (Some(0), Some("23505"), TransactionOutcome::RolledBack)
    );
    let reads = Plan::new([by_key(1), by_key(2)]);
    let error = reads.run_with(&[1, 0], &fixture, &owner).await.unwrap_err();
    assert_eq!(
        (error.step, error.outcome),
        (Some(1), TransactionOutcome::RolledBack)
    );
    assert_eq!(by_key(1).value(&fixture, &owner).await, r#""item 1""#);
}

fn write_slowly() -> Sql {
    Sql::new("insert into note select 2, pg_sleep(60)::text as overdue")
}

#[tokio::test]
async fn a_passed_deadline_ends_the_pipeline_before_the_response() {
    let fixture = fixture("pipeline_deadline").await;
    let owner = fixture.owner();
    let sleep = || Sql::new("select pg_sleep(60) as overdue");
    for steps in [
        vec![write_returning(1), sleep(), write(2)],
        vec![by_key(1), sleep()],
        vec![write(1), write_slowly(), write(3)],
    ] {
        let mut plan = Plan::new(steps).ours();
        plan.options.deadline = Some(Instant::now() + Duration::from_millis(200));
        let began = Instant::now();
        let error = plan.run(&fixture, &owner).await.unwrap_err();
        assert!(matches!(error.error, Error::Deadline), "{error:?}");
        // The outcome is known even if the commit was sent with the statements.
        assert_eq!(
            (error.step, error.outcome),
            (Some(1), TransactionOutcome::RolledBack)
        );
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(fixture.running("overdue").await, 0);
        assert_eq!(notes(&fixture).await, "0");
    }
}

#[tokio::test]
async fn a_pipeline_whose_caller_has_gone_leaves_nothing() {
    let fixture = std::sync::Arc::new(fixture("pipeline_dropped").await);
    let plan = Plan::new([
        write_returning(1),
        Sql::new("select pg_sleep(60) as abandoned"),
    ]);
    let plan = plan.ours();
    let task = tokio::spawn({
        let fixture = fixture.clone();
        async move { plan.run(&fixture, &fixture.owner()).await.is_ok() }
    });
    fixture.wait_for_running("abandoned", 1).await;
    task.abort();
    fixture.wait_for_running("abandoned", 0).await;
    fixture.rest().await;
    assert_eq!(notes(&fixture).await, "0");
}

#[tokio::test]
async fn an_error_of_a_deferred_constraint_has_no_step() {
    let fixture = fixture("pipeline_deferred").await;
    let owner = fixture.owner();
    let table = "create table once (a int unique deferrable initially deferred)";
    Sql::new(table).run(&fixture, &owner).await.unwrap();
    let insert = |returning: &str| Sql::new(&format!("insert into once values (1) {returning}"));
    for returning in ["", "returning a"] {
        let plan = Plan::new([insert(returning), insert(returning)]);
        for plan in [
            plan.together(),
            Plan::new([insert(returning), insert(returning)]),
        ] {
            let error = plan.run(&fixture, &owner).await.unwrap_err();
            let expected = (None, Some("23505"), TransactionOutcome::RolledBack);
            assert_eq!(step_of(&error), expected);
        }
    }
    let count = fixture.value("select count(*)::text from once").await;
    assert_eq!(count, "0");
}

#[tokio::test]
async fn a_serialization_failure_names_its_statement() {
    let fixture = fixture("pipeline_serial").await;
    let owner = fixture.owner();
    let conflict = "create function conflict() returns int language plpgsql as $$ begin
        raise exception 'could not serialize' using errcode = '40001'; end $$";
    Sql::new(conflict).run(&fixture, &owner).await.unwrap();
    for first in [write(1), write_returning(1)] {
        let plan = Plan::new([first, by_key(1), Sql::new("select conflict()")]);
        let error = plan.run(&fixture, &owner).await.unwrap_err();
        let expected = (Some(2), Some("40001"), TransactionOutcome::RolledBack);
        assert_eq!(step_of(&error), expected);
        assert_eq!(notes(&fixture).await, "0");
    }
}

#[tokio::test]
async fn statements_whose_tables_have_changed_are_described_again() {
    let fixture = fixture("pipeline_stale").await;
    let owner = fixture.owner();
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
        let columns = |rows: &[crate::fixture::Rows]| rows[0].columns.len();
        let before = columns(&plan().run(&fixture, &owner).await.unwrap());
        // The service is not notified of this change.
        let change = format!("alter table note {change}");
        fixture.admin.batch_execute(&change).await.unwrap();
        let after = columns(&plan().run(&fixture, &owner).await.unwrap());
        assert_ne!(before, after, "{index}");
    }
    // A pipeline whose first statement has had a response is rolled back with 40001. The caller
    // may repeat it.
    write_plan().run(&fixture, &owner).await.unwrap();
    fixture
        .admin
        .batch_execute("delete from note; alter table note add column last int")
        .await
        .unwrap();
    let error = write_plan().run(&fixture, &owner).await.unwrap_err();
    assert_eq!(
        step_of(&error),
        (Some(1), Some("40001"), TransactionOutcome::RolledBack)
    );
    assert_eq!(notes(&fixture).await, "0");
    let rows = write_plan().run(&fixture, &owner).await.unwrap();
    assert_eq!(rows[1].values.len(), 1);
    assert_eq!(notes(&fixture).await, "2");
}

#[tokio::test]
async fn a_session_that_has_forgotten_its_statements_is_no_error() {
    let fixture = fixture("pipeline_deallocated").await;
    let owner = fixture.owner();
    let function = "create function forget() returns int language plpgsql as
        $$ begin execute 'deallocate all'; return 1; end $$";
    Sql::new(function).run(&fixture, &owner).await.unwrap();
    let plan = || Plan::new([by_key(1), by_key(2)]).snapshot();
    for _ in 0..3 {
        plan().run(&fixture, &owner).await.unwrap();
        let forget = Sql::new("select forget()");
        assert_eq!(forget.value(&fixture, &owner).await, "1");
        fixture.rest().await;
        let rows = plan().run(&fixture, &owner).await.unwrap();
        assert_eq!(rows[1].values, [[r#""item 2""#]]);
    }
}

#[tokio::test]
async fn a_stale_description_on_another_connection_never_writes_twice() {
    let fixture = fixture("pipeline_twice").await;
    let owner = fixture.owner();
    let table = Sql::new("create table hits (at int)");
    table.run(&fixture, &owner).await.unwrap();
    let plan = || {
        let hit = Sql::new("insert into hits values (1)");
        let mut plan = Plan::new([Sql::new("select * from note where id = 0"), hit]);
        plan.options.deadline = Some(Instant::now() + Duration::from_secs(20));
        plan
    };
    plan().run(&fixture, &owner).await.unwrap();
    // Another connection has only the descriptions that were cached from this one.
    let change = "alter table note alter column text type int using 0;
        select pg_terminate_backend(pid) from pg_stat_activity
            where datname = 'pipeline_twice' and pid <> pg_backend_pid() and usename = datname;
        delete from hits";
    fixture.admin.batch_execute(change).await.unwrap();
    let mut ran = plan().run(&fixture, &owner).await;
    while ran.is_err() {
        assert_eq!(ran.unwrap_err().outcome, TransactionOutcome::RolledBack);
        ran = plan().run(&fixture, &owner).await;
    }
    assert_eq!(
        ran.unwrap()[0].columns[1].r#type,
        tidegate_values::Type::INT4
    );
    let hits = fixture.value("select count(*)::text from hits").await;
    assert_eq!(hits, "1");
}
