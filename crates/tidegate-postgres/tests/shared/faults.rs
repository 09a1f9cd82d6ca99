//! Errors, deadlines and dropped roles in the middle of pipelines.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_sql::{Author, Error};

use super::{WHO, backends, in_transaction, ours, tenant, user};
use crate::fixture::Sql;
use tidegate_sql::Mode;

#[tokio::test]
async fn no_connection_keeps_a_role_after_an_error() {
    let (fixture, open) = tenant("shared_errors", 2).await;
    let (first, second) = (user(&fixture, 1), user(&fixture, 2));
    let mine = |login: &tidegate_sql::Login| {
        format!("\"{} {}/$authenticator1\"", login.role, fixture.name)
    };
    for _ in 0..3 {
        let failing = ours("select 1 / :n").set(["0"]);
        assert_eq!(failing.refusal(&fixture, &first).await, "22012");
        assert_eq!(ours(WHO).value(&fixture, &second).await, mine(&second));
        let unknown = ours("select * from missing");
        assert_eq!(unknown.refusal(&fixture, &second).await, "42P01");
        assert_eq!(ours(WHO).value(&fixture, &first).await, mine(&first));
        let late = ours("select pg_sleep(60)").within(Duration::from_millis(50));
        let error = late.run(&fixture, &first).await.unwrap_err();
        assert!(matches!(error, Error::Deadline), "{error:?}");
        assert_eq!(ours(WHO).value(&fixture, &second).await, mine(&second));
        {
            let dropped = ours("select pg_sleep(60) as dropped").run(&fixture, &first);
            tokio::select! {
                _ = dropped => panic!("it sleeps"),
                () = fixture.wait_for_running("dropped", 1) => {}
            }
        }
        assert_eq!(ours(WHO).value(&fixture, &second).await, mine(&second));
    }
    assert_eq!(open.invalidated(), 0);
}

#[tokio::test]
async fn a_backend_that_dies_takes_one_request_with_it() {
    let (fixture, _) = tenant("shared_killed", 2).await;
    let (first, second) = (user(&fixture, 1), user(&fixture, 2));
    let sleeps = ours("select pg_sleep(60) as killed").run(&fixture, &first);
    let kills = async {
        fixture.wait_for_running("killed", 1).await;
        fixture
            .value(
                "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
                 WHERE datname = 'shared_killed' AND query LIKE '%as killed%' \
                   AND pid <> pg_backend_pid()",
            )
            .await
    };
    let (slept, _) = tokio::join!(sleeps, kills);
    let error = slept.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let who = ours(WHO).value(&fixture, &second).await;
    assert!(who.starts_with(&format!("\"{} ", second.role)), "{who}");
}

#[tokio::test]
async fn a_refused_role_runs_on_its_own_login_once() {
    let (fixture, open) = tenant("shared_refused", 2).await;
    let (name, first, second) = (&fixture.name, user(&fixture, 1), user(&fixture, 2));
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE log (who text, login text); GRANT ALL ON log TO \"{name}/all\""
        ))
        .await
        .unwrap();
    let insert = "insert into log values (current_user, session_user) returning who";
    ours(insert).run(&fixture, &first).await.unwrap();
    let revoke = format!("REVOKE \"{name}/u1\" FROM \"{name}/$authenticator1\"");
    fixture.admin.batch_execute(&revoke).await.unwrap();
    // The cases are cached and unknown statements, with and without hints, alone and in
    // transactions.
    ours(insert).run(&fixture, &first).await.unwrap();
    assert_eq!(open.invalidated(), 1);
    let own = format!("\"{0} {0}\"", first.role);
    assert_eq!(ours(WHO).value(&fixture, &first).await, own);
    let hinted = ours("select session_user || :a").hint("text").set(["\"\""]);
    let hinted = hinted.value(&fixture, &first).await;
    assert_eq!(hinted, format!("\"{}\"", first.role));
    let texts = [insert, WHO];
    for mode in [Mode::ReadWrite, Mode::Snapshot] {
        let texts = if mode == Mode::Snapshot {
            &texts[1..]
        } else {
            &texts
        };
        let rows = in_transaction(&fixture, &first, mode, texts).await.unwrap();
        assert_eq!(rows.last().unwrap().values, [[own.clone()]]);
    }
    assert_eq!(open.invalidated(), 5);
    let logins = "SELECT string_agg(login || ' ' || n, ', ' ORDER BY login) \
        FROM (SELECT login, count(*) n FROM log GROUP BY login) l";
    let expected = format!("{name}/$authenticator1 1, {name}/u1 2");
    assert_eq!(fixture.value(logins).await, expected);
    let who = ours(WHO).value(&fixture, &second).await;
    assert_eq!(who, format!("\"{} {name}/$authenticator1\"", second.role));
}

#[tokio::test]
async fn a_refused_role_spoils_nothing_for_others() {
    let (fixture, open) = tenant("shared_unspoilt", 2).await;
    let (name, first, second) = (&fixture.name, user(&fixture, 1), user(&fixture, 2));
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE log (who text); GRANT ALL ON log TO \"{name}/all\";
             REVOKE \"{name}/u1\" FROM \"{name}/$authenticator1\""
        ))
        .await
        .unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(2);
    let mut rounds = 0;
    // When plain writes are no longer followed by a reset, name resolution is checked before the
    // next new statement.
    while std::time::Instant::now() < until {
        rounds += 1;
        let insert = ours("insert into log values ('a')");
        insert.run(&fixture, &second).await.unwrap();
        let refused = open.invalidated();
        let new = ours(&format!("select {rounds} + count(*) from log"));
        new.run(&fixture, &first).await.unwrap();
        assert!(open.invalidated() > refused);
        let read = format!("select who as c{rounds} from log limit 1");
        assert_eq!(ours(&read).value(&fixture, &second).await, "\"a\"");
        let kept = ours("select count(*) from pg_prepared_statements where statement = :text");
        let kept = kept.set([&format!("\"{read}\"")]);
        assert_eq!(kept.value(&fixture, &second).await, "1", "round {rounds}");
    }
}

#[tokio::test]
async fn dropped_renamed_and_locked_users_are_refused() {
    let (fixture, open) = tenant("shared_gone", 3).await;
    let name = &fixture.name;
    for number in 1..=3 {
        ours(WHO).value(&fixture, &user(&fixture, number)).await;
    }
    fixture
        .admin
        .batch_execute(&format!(
            "DROP ROLE \"{name}/u1\"; ALTER ROLE \"{name}/u2\" RENAME TO \"{name}/u9\""
        ))
        .await
        .unwrap();
    for number in [1, 2] {
        let error = ours(WHO)
            .run(&fixture, &user(&fixture, number))
            .await
            .unwrap_err();
        assert!(!matches!(error, Error::Internal(_)), "{error:?}");
    }
    // The decision takes NOLOGIN into account, and then the user's own login is refused.
    let lock = format!("ALTER ROLE \"{name}/u3\" NOLOGIN");
    fixture.admin.batch_execute(&lock).await.unwrap();
    open.closed.store(true, Ordering::SeqCst);
    let refused = ours(WHO).refusal(&fixture, &user(&fixture, 3)).await;
    assert_eq!(refused, "28000");
}

#[tokio::test]
async fn without_an_authenticator_that_logs_in_users_log_in() {
    let (fixture, open) = tenant("shared_locked", 1).await;
    let (name, login) = (&fixture.name, user(&fixture, 1));
    let lock = format!("ALTER ROLE \"{name}/$authenticator1\" NOLOGIN");
    fixture.admin.batch_execute(&lock).await.unwrap();
    let own = format!("\"{0} {0}\"", login.role);
    assert_eq!(ours(WHO).value(&fixture, &login).await, own);
    assert!(open.invalidated() > 0);
    let rows = in_transaction(&fixture, &login, Mode::ReadWrite, &[WHO]).await;
    assert_eq!(rows.unwrap()[0].values, [[own]]);
}

#[tokio::test]
async fn what_an_owners_method_leaves_is_removed() {
    let (fixture, _) = tenant("shared_residue", 2).await;
    let (name, guest, owner) = (fixture.name.clone(), fixture.guest(), fixture.owner());
    fixture
        .admin
        .batch_execute(&format!(
            "GRANT TEMP ON DATABASE \"{name}\" TO \"{name}/guest\";
             CREATE FUNCTION public.leave() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('my.secret', current_user, false);
                 PERFORM set_config('statement_timeout', '77s', false);
                 PERFORM pg_advisory_lock(4711);
                 CREATE TEMP TABLE left_over AS SELECT 1 AS a;
                 EXECUTE 'PREPARE left_over AS SELECT 1';
                 RETURN 'left'; END $f$;
             CREATE VIEW public.leaving AS SELECT public.leave() AS what;
             GRANT SELECT ON public.leaving TO PUBLIC"
        ))
        .await
        .unwrap();
    let check = "select concat_ws(' ', coalesce(nullif(current_setting('my.secret', true), ''), '-'), \
        current_setting('statement_timeout'), to_regclass('pg_temp.left_over'), \
        (select count(*) from pg_prepared_statements where from_sql), \
        (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()))";
    for login in [&guest, &owner, &user(&fixture, 1)] {
        for sql in [
            Sql::new("select public.leave()").by(Author::Owner),
            ours("select what from public.leaving"),
        ] {
            if sql.run(&fixture, login).await.is_err() {
                // The user lacks the privilege to make temporary tables.
                assert_eq!(login, &user(&fixture, 1));
            }
            let next = if login == &user(&fixture, 1) {
                user(&fixture, 2)
            } else {
                login.clone()
            };
            assert_eq!(ours(check).value(&fixture, &next).await, "\"- 0 0 0\"");
        }
    }
    assert_eq!(backends(&fixture, &format!("{name}/u1")).await, "1");
}
