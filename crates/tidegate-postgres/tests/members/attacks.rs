//! Code in a member's transaction that tries to act for another member.

use tidegate_sql::{Author, Error, Login, Mode};

use super::{BODIES, ID, bodies, in_transaction, member, ours, quoted, tenant};
use crate::fixture::{Fixture, Sql};
use crate::pipeline::Plan;

/// Functions and tables of an owner who attacks the members.
async fn prepare(fixture: &Fixture) {
    let name = &fixture.name;
    fixture
        .admin
        .batch_execute(&format!(
            "CREATE FUNCTION forge(id text) RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('tidegate.identity',
                     substr(current_setting('tidegate.identity'), 1, 64) || id, true);
                 RETURN true; END $f$;
             CREATE FUNCTION forge_claims() RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('tidegate.claims', substr(current_setting('tidegate.claims'), 1, 64)
                     || '{{\"org\":\"o0\"}}', true);
                 RETURN true; END $f$;
             CREATE FUNCTION erase() RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('tidegate.identity', '', true), set_config('tidegate.claims', '', true);
                 RETURN true; END $f$;
             CREATE FUNCTION in_savepoint() RETURNS text LANGUAGE plpgsql AS $f$ BEGIN
                 BEGIN PERFORM forge('m2'); PERFORM tidegate.user_id();
                 EXCEPTION WHEN insufficient_privilege THEN NULL; END;
                 RETURN tidegate.user_id(); END $f$;
             CREATE TABLE kept (identity text, claims text);
             CREATE FUNCTION keep() RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN
                 INSERT INTO kept VALUES (current_setting('tidegate.identity'), current_setting('tidegate.claims'));
                 PERFORM set_config('tidegate.identity', current_setting('tidegate.identity'), false),
                     set_config('tidegate.claims', current_setting('tidegate.claims'), false);
                 RETURN true; END $f$;
             CREATE FUNCTION replay() RETURNS bool LANGUAGE plpgsql AS $f$ BEGIN
                 PERFORM set_config('tidegate.identity', identity, true),
                     set_config('tidegate.claims', claims, true) FROM kept;
                 RETURN true; END $f$;
             CREATE TABLE bait (owner text);
             INSERT INTO bait VALUES ('m1'), ('m2');
             ALTER TABLE bait ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON bait USING (forge('m2') AND owner = (SELECT tidegate.user_id()));
             CREATE TABLE bait_first (owner text);
             INSERT INTO bait_first VALUES ('m1'), ('m2');
             ALTER TABLE bait_first ENABLE ROW LEVEL SECURITY;
             CREATE POLICY own ON bait_first USING (CASE WHEN forge('m2') THEN owner = tidegate.user_id() END);
             CREATE TABLE hidden (body text);
             INSERT INTO hidden VALUES ('hidden');
             ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
             CREATE POLICY unblocked ON hidden USING (tidegate.claim('blocked') IS NULL);
             GRANT ALL ON ALL TABLES IN SCHEMA public TO \"{name}/group/staff\""
        ))
        .await
        .unwrap();
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. })
}

/// Runs a text of the owner's, then a text of Tidegate's, in one transaction, in all ways.
async fn both(
    fixture: &Fixture,
    login: &Login,
    attack: &str,
    then: &str,
) -> Vec<Result<String, Error>> {
    let mut plan = Plan::new([attack, then].map(ours)).ours();
    let piped = plan.run(fixture, login).await;
    let piped = piped.map(|rows| rows[1].values.concat().concat());
    plan = plan.snapshot();
    let snapshot = plan.run(fixture, login).await;
    let snapshot = snapshot.map(|rows| rows[1].values.concat().concat());
    let texts = [attack, then];
    let transaction = in_transaction(fixture, login, Mode::ReadWrite, &texts).await;
    vec![
        piped.map_err(|failed| failed.error),
        snapshot.map_err(|failed| failed.error),
        transaction.map(|rows| rows[1].values.concat().concat()),
    ]
}

async fn is_clean(fixture: &Fixture) {
    for number in [1, 2] {
        let login = member(fixture, number);
        let rows = ours(BODIES).run(fixture, &login).await.unwrap();
        assert_eq!(rows.values, bodies(number));
    }
}

#[tokio::test]
async fn forged_claims_are_refused() {
    let fixture = tenant("members_forged", 1).await;
    prepare(&fixture).await;
    let one = member(&fixture, 1);
    let attacks = [
        "select forge('m2')",
        "select erase()",
        "select set_config('tidegate.identity', repeat('0', 64) || 'm2', true)",
        "select set_config('tidegate.claims', repeat('0', 64) || '{}', true)",
        "select set_config('tidegate.identity', null, true)",
    ];
    for attack in attacks {
        for then in [ID, BODIES] {
            for outcome in both(&fixture, &one, attack, then).await {
                assert!(
                    outcome.as_ref().is_err_and(is_refused),
                    "{attack}: {outcome:?}"
                );
            }
            is_clean(&fixture).await;
        }
    }
    // `forge_claims()` leaves the id unchanged, so the seal does not fit the claims.
    let claims = "select tidegate.claims()::text";
    for outcome in both(&fixture, &one, "select forge_claims()", claims).await {
        assert!(outcome.is_err_and(|error| is_refused(&error)));
    }
    let blocked = both(&fixture, &one, "select erase()", "select body from hidden").await;
    assert!(
        blocked
            .iter()
            .all(|outcome| outcome.as_ref().is_err_and(is_refused))
    );
}

#[tokio::test]
async fn a_policy_that_forges_shows_no_other_rows() {
    let fixture = tenant("members_policy", 1).await;
    prepare(&fixture).await;
    let one = member(&fixture, 1);
    let rows = ours("select owner from bait").run(&fixture, &one).await;
    match rows {
        Ok(rows) => assert_eq!(rows.values, [[quoted(1)]]),
        Err(error) => assert!(is_refused(&error), "{error:?}"),
    }
    let first = ours("select owner from bait_first")
        .run(&fixture, &one)
        .await;
    assert!(first.is_err_and(|error| is_refused(&error)));
    is_clean(&fixture).await;
}

#[tokio::test]
async fn a_savepoint_restores_the_own_claims() {
    let fixture = tenant("members_savepoint", 1).await;
    prepare(&fixture).await;
    let id = ours("select in_savepoint()")
        .value(&fixture, &member(&fixture, 1))
        .await;
    assert_eq!(id, quoted(1));
    is_clean(&fixture).await;
}

#[tokio::test]
async fn replayed_claims_are_refused() {
    let fixture = tenant("members_replay", 2).await;
    prepare(&fixture).await;
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    // A text of the service keeps the connection, and one of the owner does not.
    for author in [Author::Service, Author::Owner] {
        let keep = Sql::new("select keep()").by(author);
        assert_eq!(keep.value(&fixture, &two).await, "true");
        for outcome in both(&fixture, &one, "select replay()", ID).await {
            assert!(outcome.as_ref().is_err_and(is_refused), "{outcome:?}");
        }
        let method = Sql::new("select replay(), tidegate.user_id()").by(Author::Owner);
        assert!(
            method
                .run(&fixture, &one)
                .await
                .is_err_and(|error| is_refused(&error))
        );
        is_clean(&fixture).await;
    }
}

/// Code sees a token only if it replaces the statement that seals claims. The token is valid only
/// for one backend and one member, and the reset drops the replaced statement.
#[tokio::test]
async fn a_replaced_seal_is_found_by_the_reset() {
    let fixture = tenant("members_replaced", 1).await;
    fixture
        .admin
        .batch_execute(
            "CREATE FUNCTION swap_seal() RETURNS int LANGUAGE plpgsql AS $f$ DECLARE p record; n int := 0; BEGIN
                 FOR p IN SELECT name FROM pg_prepared_statements
                          WHERE statement LIKE '%tidegate.identity%' AND NOT from_sql LOOP
                     EXECUTE format('DEALLOCATE %I', p.name);
                     EXECUTE format('PREPARE %I (bytea, text, text) AS SELECT $1, $2, $3', p.name);
                     n := n + 1;
                 END LOOP; RETURN n; END $f$",
        )
        .await
        .unwrap();
    let (one, two) = (member(&fixture, 1), member(&fixture, 2));
    for author in [Author::Service, Author::Owner] {
        let replaced = Sql::new("select swap_seal()").by(author);
        assert_eq!(
            replaced.value(&fixture, &one).await,
            "1",
            "no seal was prepared"
        );
        assert_eq!(ours(ID).value(&fixture, &two).await, quoted(2));
        is_clean(&fixture).await;
    }
}

#[tokio::test]
async fn a_member_cannot_become_another_role() {
    let fixture = tenant("members_roles", 1).await;
    let name = &fixture.name;
    let one = member(&fixture, 1);
    for role in [name.clone(), format!("{name}/alice"), "none".to_owned()] {
        let text = format!("select set_config('role', '{role}', true), tidegate.user_id()");
        let outcome = Sql::new(&text).by(Author::Owner).run(&fixture, &one).await;
        match outcome {
            Ok(rows) => assert_eq!((&*role, &rows.values[0][1]), ("none", &quoted(1))),
            Err(error) => assert_eq!(error.sqlstate(), Some("42501"), "{role}"),
        }
    }
    is_clean(&fixture).await;
}
