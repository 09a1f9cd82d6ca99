//! Methods of the owner that call user-defined functions.

use std::time::{Duration, Instant};

use tidegate_sql::{Author, Commit, Login, Mode, Pipeline, PipelineStep, QueryOptions, RowSink};

use super::{FixedAuthenticator, backends, ours, tenant, user};
use crate::fixture::{CollectedRows, Fixture, Sql};

const WHO: &str = "current_user || ' ' || session_user";

/// A tenant in whose schema `public` everyone may use everything.
async fn with_functions(
    name: &str,
    sql: &str,
) -> (std::sync::Arc<Fixture>, std::sync::Arc<FixedAuthenticator>) {
    let (fixture, open) = tenant(name, 2).await;
    let usage = "GRANT USAGE ON SCHEMA public TO PUBLIC;";
    let made = fixture.admin.batch_execute(&[usage, sql].concat()).await;
    made.unwrap();
    (fixture, open)
}

fn method(text: &str) -> Sql {
    Sql::new(text).by(Author::Owner)
}

/// Whether a method runs on a shared connection.
async fn is_shared(fixture: &Fixture, login: &Login, text: &str) -> bool {
    let who = method(text).value(fixture, login).await;
    let [shared, own] = [
        format!("\"{} {}/$authenticator1\"", login.role, fixture.name),
        format!("\"{0} {0}\"", login.role),
    ];
    assert!(who == shared || who == own, "{text}: {who}");
    who == shared
}

/// Whether the method runs on a shared connection within 20 seconds. On a busy machine the
/// functions are read late.
async fn becomes_shared(fixture: &Fixture, login: &Login, text: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_shared(fixture, login, text).await {
        if Instant::now() > deadline {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn functions_that_only_read_and_write_run_on_shared_connections() {
    let (fixture, _) = with_functions(
        "shared_functions",
        &format!(
            "CREATE FUNCTION who() RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$;
             CREATE FUNCTION who_too(a text DEFAULT 'x') RETURNS text LANGUAGE plpgsql
                 AS $f$ DECLARE found text; BEGIN SELECT who() INTO found; RETURN found; END $f$;
             CREATE FUNCTION defined() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
                 AS $f$ DECLARE found text; BEGIN EXECUTE 'select 1' INTO found; RETURN found; END $f$;
             CREATE FUNCTION owners(a text) RETURNS text LANGUAGE sql
                 AS $f$ select who() where defined() = '1' $f$"
        ),
    )
    .await;
    let login = user(&fixture, 1);
    for text in [
        "select who()",
        "select who_too()",
        "select who_too(a => 'y')",
        "select owners('z')",
    ] {
        assert!(becomes_shared(&fixture, &login, text).await, "{text}");
    }
}

#[tokio::test]
async fn functions_to_which_a_caller_could_hand_sql_or_a_role_keep_the_callers_login() {
    let jump =
        "LANGUAGE plpgsql AS $f$ BEGIN PERFORM set_config('role', a, true); RETURN a; END $f$";
    let (fixture, _) = with_functions(
        "shared_unsafe",
        &format!(
            "CREATE SCHEMA apart; GRANT USAGE ON SCHEMA apart TO \"shared_unsafe/all\";
             CREATE FUNCTION jump(a text) RETURNS text {jump};
             CREATE FUNCTION wrapped(a text) RETURNS text LANGUAGE sql AS $f$ select jump(a) $f$;
             CREATE FUNCTION run(a text) RETURNS text LANGUAGE plpgsql
                 AS $f$ DECLARE found text; BEGIN EXECUTE a INTO found; RETURN found; END $f$;
             CREATE FUNCTION fixed(a text) RETURNS text LANGUAGE plpgsql
                 AS $f$ BEGIN SET LOCAL ROLE \"shared_unsafe/u2\"; RETURN a; END $f$;
             CREATE FUNCTION who(a text) RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$;
             CREATE FUNCTION apart.far(a text) RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$;
             CREATE FUNCTION apart.farther(a text) RETURNS text LANGUAGE sql SECURITY DEFINER
                 AS $f$ select session_user || ' ' || session_user $f$;
             CREATE FUNCTION few(a text) RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$;
             REVOKE EXECUTE ON FUNCTION few FROM PUBLIC;
             GRANT EXECUTE ON FUNCTION few TO \"shared_unsafe/u1\""
        ),
    )
    .await;
    let login = user(&fixture, 1);
    assert!(becomes_shared(&fixture, &login, "select who('a')").await);
    let other = format!("\"{}/u2\"", fixture.name);
    for text in [
        "select jump(:to)",
        "select wrapped(:to)",
        "select fixed(:to)",
    ] {
        let refused = method(text).set([&other]).refusal(&fixture, &login).await;
        assert_eq!(refused, "42501", "{text}");
    }
    let run = format!("select run('select {}')", WHO.replace('\'', "''"));
    for text in [
        run.as_str(),
        // The call of `run` is not analysed, and PostgreSQL may resolve either function first.
        "select who('a') from (select 1) t where false is not distinct from (run('select true') is null)",
        // PostgreSQL checks these privileges only for the first user of a prepared statement.
        "select apart.far('a')",
        "select apart.farther('a')",
        "select few('a')",
    ] {
        assert!(!is_shared(&fixture, &login, text).await, "{text}");
    }
}

/// A procedure or block may commit, which ends the switch: the rest would run as the authenticator.
/// A temporary table would stay in the session that all users share.
#[tokio::test]
async fn statements_that_are_no_plain_read_or_write_keep_their_login() {
    let record = "insert into log select current_user, usename from pg_stat_activity \
        where pid = pg_backend_pid()";
    let (fixture, _) = with_functions(
        "shared_statement_kinds",
        &format!(
            "CREATE TABLE log (who text, login text); GRANT INSERT ON log TO PUBLIC;
             GRANT TEMP ON DATABASE shared_statement_kinds TO PUBLIC;
             CREATE FUNCTION who(a text) RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$;
             CREATE PROCEDURE commits() LANGUAGE plpgsql
                 AS $f$ BEGIN COMMIT; {record}; END $f$"
        ),
    )
    .await;
    let login = user(&fixture, 1);
    // From now on the functions of the database are known, so calls alone keep no login.
    assert!(becomes_shared(&fixture, &login, "select who('a')").await);
    let block = format!("do $$ begin commit; {record}; end $$");
    let temporary = format!(
        "create temp table t on commit drop as with done as ({record} returning 1 as one) \
         select one from done"
    );
    for text in ["call commits()", &block, &temporary] {
        for sql in [method(text), ours(text)] {
            sql.run(&fixture, &login).await.unwrap();
            let take = "WITH taken AS (DELETE FROM log RETURNING who || ' ' || login AS line) \
                SELECT string_agg(line, ', ') FROM taken";
            let own = format!("{0} {0}", login.role);
            assert_eq!(fixture.value(take).await, own, "{text}");
        }
    }
}

#[tokio::test]
async fn a_function_that_becomes_unsafe_is_kept_from_shared_connections() {
    let body = |body: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION public.own(a text) RETURNS text LANGUAGE plpgsql
                 AS $f$ BEGIN {body} RETURN {WHO}; END $f$"
        )
    };
    let (fixture, _) = with_functions("shared_unsafe_later", &body("")).await;
    let login = user(&fixture, 1);
    let text = "select public.own('a')";
    assert!(becomes_shared(&fixture, &login, text).await);
    // A change on this node takes effect at once.
    let unsafe_body = body("EXECUTE 'select 1';");
    let admin = format!("ALTER FUNCTION public.own OWNER TO \"{}\"", fixture.name);
    fixture.admin.batch_execute(&admin).await.unwrap();
    Sql::new(&unsafe_body)
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert!(!is_shared(&fixture, &login, text).await);
    // A change outside of this node takes effect within about a second, in both directions.
    for (sql, shared) in [
        (body(""), true),
        (unsafe_body, false),
        (body(""), true),
        (
            "REVOKE USAGE ON SCHEMA public FROM PUBLIC".to_owned(),
            false,
        ),
    ] {
        fixture.admin.batch_execute(&sql).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while is_shared(&fixture, &login, text).await != shared {
            assert!(Instant::now() < deadline, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_function_leaves_nothing_for_the_next_user() {
    let (fixture, _) = with_functions(
        "shared_function_residue",
        &format!(
            "CREATE FUNCTION leave() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
                 CREATE TEMP TABLE left_over AS SELECT 1 AS a;
                 PERFORM pg_advisory_lock(7);
                 SET statement_timeout = 12345;
                 RETURN {WHO}; END $f$;
             GRANT TEMP ON DATABASE shared_function_residue TO \"shared_function_residue/all\""
        ),
    )
    .await;
    assert!(becomes_shared(&fixture, &user(&fixture, 1), "select leave()").await);
    let check = "select concat_ws(' ', current_setting('statement_timeout'), \
        to_regclass('pg_temp.left_over'), (select count(*) from pg_locks \
        where locktype = 'advisory' and pid = pg_backend_pid()))";
    let left = ours(check).value(&fixture, &user(&fixture, 2)).await;
    assert_eq!(left, "\"0 0\"");
    assert_eq!(
        backends(&fixture, "shared_function_residue/$authenticator1").await,
        "1"
    );
}

#[tokio::test]
async fn a_batch_may_end_with_a_function() {
    let sql = format!("CREATE FUNCTION who() RETURNS text LANGUAGE sql AS $f$ select {WHO} $f$");
    let (fixture, _) = with_functions("shared_function_batch", &sql).await;
    let login = user(&fixture, 1);
    let texts = ["select 1::text", "select who()"];
    let bound = texts.map(|text| {
        let mut bound = method(text).bound;
        bound.sets.push(Vec::new());
        bound
    });
    let mut gathered: Vec<_> = texts.iter().map(|_| CollectedRows::default()).collect();
    let steps = bound.iter().zip(&mut gathered);
    let pipeline = Pipeline {
        mode: Mode::ReadWrite,
        steps: steps
            .map(|(statement, sink)| PipelineStep {
                statement,
                sink: sink as &mut dyn RowSink,
            })
            .collect(),
        commit: Commit::AfterRows,
    };
    let options = QueryOptions {
        author: Author::Owner,
        ..QueryOptions::default()
    };
    assert!(becomes_shared(&fixture, &login, texts[1]).await);
    let ran = fixture.users.pipeline(&login, pipeline, &options).await;
    let completions = ran.unwrap();
    let who = gathered.remove(1).rows(completions[1]).values;
    let shared = format!("\"{} {}/$authenticator1\"", login.role, fixture.name);
    assert_eq!(who, [[shared]]);
}
