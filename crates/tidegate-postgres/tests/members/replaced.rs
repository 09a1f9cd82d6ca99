//! Code in a member's transaction that puts statements of its own in the place of those that
//! Tidegate has prepared, to read the token of the next member.

use std::time::{Duration, Instant};

use tidegate_sql::{Author, Login, Mode};

use super::{BODIES, ID, bodies, in_transaction, member, ours, quoted, tenant};
use crate::fixture::{Fixture, Sql};
use crate::pipeline::Plan;

/// A tenant whose owner has functions that replace prepared statements. `swap()` replaces the check
/// of the reset, and the statement that seals claims by one that also keeps the token.
/// `fail_once()` does the same and raises an error that causes a second attempt. `drop_seal()` only
/// drops the statement that seals claims.
async fn prepare(name: &str) -> Fixture {
    let fixture = tenant(name, 1).await;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE TABLE stolen (token text);
             CREATE SEQUENCE attempts;
             CREATE FUNCTION swap() RETURNS int LANGUAGE plpgsql AS $f$ DECLARE p record; n int := 0; BEGIN
                 FOR p IN SELECT name, statement FROM pg_prepared_statements WHERE NOT from_sql LOOP
                     IF p.statement LIKE '%tidegate.identity%' THEN
                         EXECUTE format('DEALLOCATE %I', p.name);
                         EXECUTE format('PREPARE %I (bytea, text, text) AS
                             WITH thief AS (INSERT INTO public.stolen VALUES (encode($1, ''hex'')))
                             SELECT set_config(''tidegate.identity'', $2, true) IS NULL,
                                 set_config(''tidegate.claims'', encode(sha256($1
                                     || timestamptz_send(now())), ''hex'') || $3, true) IS NULL', p.name);
                         n := n + 1;
                     ELSIF p.statement LIKE '%pg_advisory_unlock_all%' THEN
                         EXECUTE format('DEALLOCATE %I', p.name);
                         EXECUTE format('PREPARE %I AS VALUES (''a''), (''b'')', p.name);
                     END IF;
                 END LOOP;
                 PERFORM nextval('public.attempts');
                 RETURN n; END $f$;
             CREATE FUNCTION fail_once() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
                 IF nextval('public.attempts') = 1 THEN
                     PERFORM public.swap();
                     RAISE EXCEPTION USING ERRCODE = '26000', MESSAGE = 'prepared statement does not exist';
                 END IF;
                 RETURN tidegate.user_id(); END $f$;
             CREATE FUNCTION drop_seal() RETURNS int LANGUAGE plpgsql AS $f$ DECLARE p record; n int := 0; BEGIN
                 FOR p IN SELECT name FROM pg_prepared_statements
                          WHERE statement LIKE '%tidegate.identity%' LOOP
                     EXECUTE format('DEALLOCATE %I', p.name);
                     n := n + 1;
                 END LOOP; RETURN n; END $f$;
             GRANT ALL ON ALL TABLES IN SCHEMA public TO \"{name}/group/staff\";
             GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO \"{name}/group/staff\""
        ))
        .await
        .unwrap();
    fixture
}

async fn stolen(fixture: &Fixture) -> String {
    fixture.value("SELECT count(*)::text FROM stolen").await
}

async fn pid(fixture: &Fixture, login: &Login) -> String {
    let pid = ours("select pg_backend_pid()").value(fixture, login).await;
    fixture.rest().await;
    pid
}

/// Waits until the backend has ended. A token is valid as long as it exists.
async fn ends(fixture: &Fixture, pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    let count = format!("SELECT count(*)::text FROM pg_stat_activity WHERE pid = {pid}");
    while fixture.value(&count).await != "0" {
        assert!(Instant::now() < deadline, "the backend is still used");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_reset_does_not_trust_its_prepared_check() {
    let fixture = prepare("members_check").await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    // If the check of the reset were kept prepared, it would be prepared here, before `swap()`.
    let pid = pid(&fixture, &one).await;
    assert_eq!(ours("select swap()").value(&fixture, &one).await, "1");
    assert_eq!(ours(ID).value(&fixture, &two).await, quoted(2));
    assert_eq!(stolen(&fixture).await, "0");
    ends(&fixture, &pid).await;
}

#[tokio::test]
async fn a_second_attempt_does_not_use_a_seal_of_the_first() {
    let fixture = prepare("members_attempts").await;
    let one = member(&fixture, 1);
    let text = "select fail_once()";
    for kind in 0..4 {
        ours(ID).value(&fixture, &one).await;
        fixture.rest().await;
        let restart = "ALTER SEQUENCE attempts RESTART";
        fixture.admin.batch_execute(restart).await.unwrap();
        // This statement may succeed or fail.
        match kind {
            0 => drop(ours(text).run(&fixture, &one).await),
            1 => drop(Sql::new(text).by(Author::Owner).run(&fixture, &one).await),
            2 => drop(
                Plan::new([ID, text].map(ours))
                    .ours()
                    .run(&fixture, &one)
                    .await,
            ),
            _ => drop(in_transaction(&fixture, &one, Mode::ReadWrite, &[text]).await),
        }
        let attempts = fixture.value("SELECT last_value::text FROM attempts").await;
        assert_ne!(attempts, "1", "the function has not run: {kind}");
        assert_eq!(stolen(&fixture).await, "0", "{kind}");
    }
}

#[tokio::test]
async fn a_connection_without_its_seal_is_closed() {
    let fixture = prepare("members_seal_gone").await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    let pid = pid(&fixture, &one).await;
    assert_eq!(ours("select drop_seal()").value(&fixture, &one).await, "1");
    assert_eq!(ours(ID).value(&fixture, &two).await, quoted(2));
    ends(&fixture, &pid).await;
}

/// The definition is unknown to the node until it reads the catalogs again, so the read may not be
/// followed by a reset.
#[tokio::test]
async fn what_an_unknown_definition_leaves_is_found_within_a_second_of_reads() {
    let fixture = prepare("members_window").await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    super::resets::wait_until_reads_are_pure(&fixture, &one).await;
    let pid = pid(&fixture, &one).await;
    super::resets::wait_until_reads_are_pure(&fixture, &one).await;
    let restart = "ALTER SEQUENCE attempts RESTART;
        CREATE POLICY swaps ON notes AS RESTRICTIVE USING (CASE WHEN body LIKE 'note 1%' THEN swap() >= 0 ELSE true END)";
    fixture.admin.batch_execute(restart).await.unwrap();
    ours(BODIES).run(&fixture, &one).await.unwrap();
    let dropped = "DROP POLICY swaps ON notes";
    fixture.admin.batch_execute(dropped).await.unwrap();
    let has_run = fixture.value("SELECT is_called::text FROM attempts").await;
    assert_eq!(has_run, "true", "the policy has not run");
    // Only pure reads follow.
    let deadline = Instant::now() + Duration::from_secs(10);
    let count = format!("SELECT count(*)::text FROM pg_stat_activity WHERE pid = {pid}");
    while fixture.value(&count).await != "0" {
        assert!(Instant::now() < deadline, "the backend is still used");
        let rows = ours(BODIES).run(&fixture, &two).await.unwrap();
        assert_eq!(rows.values, bodies(2));
    }
}

/// A function that runs for a member could make the node trust old names for as long as it likes.
#[tokio::test]
async fn the_fingerprint_of_definitions_does_not_stay_prepared() {
    let fixture = prepare("members_fingerprint").await;
    let one = member(&fixture, 1);
    super::resets::wait_until_reads_are_pure(&fixture, &one).await;
    let kept = "select count(*) from pg_prepared_statements where statement like '%pg_statistic_ext%' \
        and statement not like 'select count%'";
    assert_eq!(ours(kept).value(&fixture, &one).await, "0");
}
