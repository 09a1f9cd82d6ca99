//! Pipelines on shared connections.

use std::time::{Duration, Instant};

use tidegate_sql::{Error, TransactionOutcome};

use super::{WHO, ours, tenant, user};
use crate::fixture::Sql;
use crate::pipeline::Plan;

const LOG: &str = "CREATE TABLE log (who text, login text); GRANT ALL ON log TO PUBLIC";
const INSERT: &str = "insert into log values (current_user, session_user) returning who";

fn statements() -> [Sql; 3] {
    [WHO, INSERT, WHO].map(ours)
}

#[tokio::test]
async fn a_pipeline_acts_as_its_caller_from_the_first_statement_to_the_last() {
    let (fixture, open) = tenant("shared_pipeline", 2).await;
    fixture.admin.batch_execute(LOG).await.unwrap();
    for number in [1, 2, 1, 2] {
        let login = user(&fixture, number);
        let who = format!("\"{} {}/$authenticator1\"", login.role, fixture.name);
        let written = Plan::new(statements()).ours().run(&fixture, &login).await;
        let written = written.unwrap();
        assert_eq!(written[0].values, [[who.clone()]]);
        assert_eq!(written[1].values, [[format!("\"{}\"", login.role)]]);
        assert_eq!(written[2].values, [[who.clone()]]);
        let read = Plan::new([ours(WHO), ours(WHO)]).ours().snapshot();
        let read = read.run(&fixture, &login).await.unwrap();
        assert_eq!(read[1].values, [[who]]);
    }
    assert_eq!(open.invalidated(), 0);
    let login = "SELECT string_agg(DISTINCT login, ' ') FROM log";
    let authenticator = format!("{}/$authenticator1", fixture.name);
    assert_eq!(fixture.value(login).await, authenticator);
}

#[tokio::test]
async fn a_pipeline_whose_role_is_refused_runs_once_on_the_callers_login() {
    let (fixture, open) = tenant("shared_pipeline_refused", 1).await;
    fixture.admin.batch_execute(LOG).await.unwrap();
    let leaves = "CREATE FUNCTION public.leaves() RETURNS int LANGUAGE sql AS 'SELECT 1'";
    fixture.admin.batch_execute(leaves).await.unwrap();
    let login = user(&fixture, 1);
    let revoke = format!(
        "REVOKE \"{}\" FROM \"{}/$authenticator1\"",
        login.role, fixture.name
    );
    let grant = format!(
        "GRANT \"{}\" TO \"{}/$authenticator1\"",
        login.role, fixture.name
    );
    let own = format!("\"{0} {0}\"", login.role);
    // The pipeline is refused while its statements are described, and again when they are cached.
    for _ in 0..2 {
        fixture.admin.batch_execute(&revoke).await.unwrap();
        let refused = Plan::new(statements()).ours().run(&fixture, &login).await;
        assert_eq!(refused.unwrap()[2].values, [[own.clone()]]);
        let read = Plan::new([ours(WHO), ours(WHO)]).ours().snapshot();
        assert_eq!(
            read.run(&fixture, &login).await.unwrap()[0].values,
            [[own.clone()]]
        );
        // A pipeline that is followed by a reset has a Sync of its own before COMMIT.
        let reset = Plan::new([ours(WHO), ours("select public.leaves()")]).ours();
        let reset = reset.snapshot().run(&fixture, &login).await.unwrap();
        assert_eq!(reset[0].values, [[own.clone()]]);
        fixture.admin.batch_execute(&grant).await.unwrap();
        Plan::new(statements())
            .ours()
            .run(&fixture, &login)
            .await
            .unwrap();
    }
    assert_eq!(open.invalidated(), 6);
    let logins = "SELECT string_agg(login || ' ' || n, ', ' ORDER BY login) \
        FROM (SELECT login, count(*) n FROM log GROUP BY login) l";
    let expected = format!("{}/$authenticator1 2, {} 2", fixture.name, login.role);
    assert_eq!(fixture.value(logins).await, expected);
}

#[tokio::test]
async fn an_error_in_a_pipeline_ends_the_role_with_the_transaction() {
    let (fixture, _) = tenant("shared_pipeline_error", 2).await;
    fixture.admin.batch_execute(LOG).await.unwrap();
    let (first, second) = (user(&fixture, 1), user(&fixture, 2));
    let fails = [INSERT, "select 1 / 0", WHO].map(ours);
    let failed = Plan::new(fails)
        .ours()
        .run(&fixture, &first)
        .await
        .unwrap_err();
    assert_eq!(failed.step, Some(1));
    let who = Plan::new([ours(WHO), ours(WHO)])
        .ours()
        .run(&fixture, &second)
        .await;
    let expected = format!("\"{} {}/$authenticator1\"", second.role, fixture.name);
    assert_eq!(who.unwrap()[0].values, [[expected]]);
    assert_eq!(fixture.value("SELECT count(*)::text FROM log").await, "0");
}

/// Checks that nothing remains of a pipeline of the first user.
async fn nothing_is_left(fixture: &crate::fixture::Fixture) {
    for number in [2, 1] {
        let login = user(fixture, number);
        let who = Plan::new([ours(WHO), ours(WHO)]).ours();
        let who = who.run(fixture, &login).await.unwrap();
        let expected = format!("\"{} {}/$authenticator1\"", login.role, fixture.name);
        assert_eq!(who[1].values, [[expected]]);
    }
    let left = "SELECT count(*)::text FROM log";
    assert_eq!(fixture.value(left).await, "0");
}

#[tokio::test]
async fn deadlines_departures_and_deaths_in_a_pipeline_leave_no_role_and_no_row() {
    let (fixture, open) = tenant("shared_pipeline_ends", 2).await;
    fixture.admin.batch_execute(LOG).await.unwrap();
    let first = user(&fixture, 1);
    let sleep = "insert into log select 'a', pg_sleep(60)::text as halfway";
    let plan = || Plan::new([INSERT, sleep, WHO].map(ours)).ours();
    let kill = "SELECT count(pg_terminate_backend(pid))::text FROM pg_stat_activity \
        WHERE datname = current_database() AND query LIKE '%halfway%' \
          AND pid <> pg_backend_pid()";
    // The first round runs unknown statements, the second one cached statements.
    for _ in 0..2 {
        let mut late = plan();
        late.options.deadline = Some(Instant::now() + Duration::from_millis(300));
        let error = late.run(&fixture, &first).await.unwrap_err();
        assert!(matches!(error.error, Error::Deadline), "{error:?}");
        assert_eq!(error.outcome, TransactionOutcome::RolledBack);
        nothing_is_left(&fixture).await;
        let gone = plan();
        tokio::select! {
            _ = gone.run(&fixture, &first) => panic!("it sleeps"),
            () = fixture.wait_for_running("halfway", 1) => {}
        }
        nothing_is_left(&fixture).await;
        let killed = plan();
        let kills = async {
            fixture.wait_for_running("halfway", 1).await;
            fixture.value(kill).await
        };
        let (killed, _) = tokio::join!(killed.run(&fixture, &first), kills);
        let error = killed.unwrap_err();
        assert!(
            matches!(error.error, Error::Unavailable { .. }),
            "{error:?}"
        );
        assert_eq!(error.outcome, TransactionOutcome::RolledBack);
        nothing_is_left(&fixture).await;
    }
    assert_eq!(open.invalidated(), 0);
}

#[tokio::test]
async fn a_role_refused_in_front_of_a_long_snapshot_spoils_no_other_snapshot() {
    let (fixture, open) = tenant("shared_pipeline_long", 2).await;
    let (first, second) = (user(&fixture, 1), user(&fixture, 2));
    // The pipeline is longer than the sockets can hold, so that the error arrives before COMMIT is
    // queued.
    let long = format!("\"{}\"", "x".repeat(100_000));
    let length = |text: &str| ours("select length(:text)").set([text]);
    let short = || Plan::new([length("\"a\""), length("\"bc\"")]).snapshot();
    short().ours().run(&fixture, &second).await.unwrap();
    let revoke = format!(
        "REVOKE \"{}\" FROM \"{}/$authenticator1\"",
        first.role, fixture.name
    );
    fixture.admin.batch_execute(&revoke).await.unwrap();
    for refused in 1..=10 {
        let plan = Plan::new((0..100).map(|_| length(&long))).snapshot();
        let rows = plan.ours().run(&fixture, &first).await.unwrap();
        assert_eq!(rows[99].values, [["100000"]]);
        assert_eq!(open.invalidated(), refused);
        fixture.rest().await;
        let rows = short().ours().run(&fixture, &second).await.unwrap();
        assert_eq!(rows[1].values, [["2"]]);
        fixture.rest().await;
    }
    let authenticator = format!("{}/$authenticator1", fixture.name);
    assert_eq!(super::backends(&fixture, &authenticator).await, "1");
    let count = ours("select count(*) < 15 from pg_prepared_statements");
    assert_eq!(count.value(&fixture, &second).await, "true");
}
