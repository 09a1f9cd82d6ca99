//! Tests that a request cannot observe what an earlier one left in the session.

mod fingerprint;
mod names;
mod purity;

use tidegate_sql::{Error, InputError, Login, Mode, QueryOptions, RoleUse};

use crate::fixture::{CollectedRows, Fixture, Sql};

/// Calls the procedure of [`LITTERING`], which leaves side effects of every kind in the session.
const LITTER: &str = "call public.litter_all()";

/// Creates the procedure that [`LITTER`] calls.
const LITTERING: &str = "create procedure litter_all() language plpgsql as $$ begin
    create temp table artists as select 'forged' as name;
    perform set_config('search_path', 'pg_temp', false);
    perform set_config('tidegate.secret', 'mine', false);
    perform set_config('TimeZone', 'Asia/Tokyo', false);
    perform pg_advisory_lock(42);
    execute 'listen litter';
    execute 'prepare evil as select 1';
    execute 'declare c cursor with hold for select 1';
    perform nextval('public.numbers');
end $$";

/// Creates a procedure that makes the following reset time out.
const SABOTAGE: &str = "create procedure sabotage() language plpgsql as $$ begin
    create temp table artists as select 'forged' as name;
    perform set_config('statement_timeout', '1', false);
    perform pg_advisory_lock(g) from generate_series(1, 2000) g;
    exception when query_canceled then null; end $$";

/// Selects the side effects that the next request can still observe.
const FOUND: &str = "select json_build_array(
    (select count(*) from pg_class where relname = 'artists' and relpersistence = 't'),
    current_setting('search_path'),
    coalesce(current_setting('tidegate.secret', true), ''),
    current_setting('TimeZone'),
    (select count(*) from pg_locks where locktype = 'advisory'
        and pid = pg_backend_pid()),
    (select count(*) from pg_listening_channels()),
    (select count(*) from pg_prepared_statements where from_sql),
    (select count(*) from pg_cursors where is_holdable))";

const NOTHING: &str = r#"[0, "\"$user\", public", "", "UTC", 0, 0, 0, 0]"#;

async fn fixture(name: &str) -> Fixture {
    let fixture = Fixture::new(name).await;
    let setup = "create sequence numbers; grant usage on sequence numbers to public;
        create table t (a int); grant all on t to public;
        create function litter() returns int language plpgsql as $f$ begin
            perform set_config('tidegate.secret', 'mine', false);
            perform set_config('search_path', 'pg_temp', false);
            execute 'prepare evil as select 1';
            return 1; end $f$;
        create function litter_trigger() returns trigger language plpgsql as $f$ begin
            perform public.litter(); return new; end $f$;
        create trigger litter after insert on t for each row execute function litter_trigger()";
    fixture.admin.batch_execute(setup).await.unwrap();
    for procedure in [LITTERING, SABOTAGE] {
        fixture.admin.batch_execute(procedure).await.unwrap();
    }
    let grant = format!("grant temp on database \"{name}\" to public");
    fixture.admin.batch_execute(&grant).await.unwrap();
    fixture
}

async fn found(fixture: &Fixture, login: &Login) -> String {
    Sql::new(FOUND).value(fixture, login).await
}

#[tokio::test]
async fn nothing_survives_a_procedure() {
    let fixture = fixture("litter").await;
    for login in [fixture.owner(), fixture.guest()] {
        Sql::new(LITTER).run(&fixture, &login).await.unwrap();
        assert_eq!(
            found(&fixture, &login).await,
            NOTHING,
            "{:?}",
            login.role_use
        );
        let used = Sql::new("select currval('numbers')")
            .refusal(&fixture, &login)
            .await;
        assert_eq!(used, "55000", "sequence values are gone too");
    }
}

#[tokio::test]
async fn nothing_survives_a_function_or_a_trigger() {
    let fixture = fixture("litter_function").await;
    for login in [fixture.owner(), fixture.guest()] {
        for q in ["select litter()", "insert into t values (1)"] {
            Sql::new(q).run(&fixture, &login).await.unwrap();
            assert_eq!(
                found(&fixture, &login).await,
                NOTHING,
                "{q} {:?}",
                login.role_use
            );
        }
    }
}

#[tokio::test]
async fn what_triggers_of_a_plain_write_leave_does_not_stay() {
    let fixture = fixture("litter_writes").await;
    let triggers = "create table w (a int); grant all on w to public;
        create function litter_rows() returns trigger language plpgsql as $f$ begin
            perform set_config('tidegate.secret', tg_op, false); return null; end $f$;
        create trigger litter after insert or update or delete on w
            for each row execute function litter_rows()";
    fixture.admin.batch_execute(triggers).await.unwrap();
    for login in [fixture.owner(), fixture.alice(), fixture.guest()] {
        for q in [
            "insert into w values (1)",
            "update w set a = 2",
            "delete from w",
        ] {
            // The second run uses the cached statement, and is sent in one write.
            for _ in 0..3 {
                Sql::new(q).run(&fixture, &login).await.unwrap();
                let found = found(&fixture, &login).await;
                assert_eq!(found, NOTHING, "{q} {:?}", login.role_use);
            }
            Sql::new("insert into w values (1)")
                .run(&fixture, &login)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn nothing_is_prepared_in_a_session_of_anonymous_callers() {
    let fixture = fixture("discarded").await;
    let guest = fixture.guest();
    for q in ["select 1", "insert into t values (1)", "call litter_all()"] {
        Sql::new(q).run(&fixture, &guest).await.unwrap();
        // Nothing is prepared, by a caller or by the service, because another caller could find and
        // use the name.
        let prepared = Sql::new("select count(*) from pg_prepared_statements");
        assert_eq!(prepared.value(&fixture, &guest).await, "0", "{q}");
    }
}

#[tokio::test]
async fn nothing_survives_a_transaction() {
    let fixture = fixture("litter_tx").await;
    let options = QueryOptions::default();
    for (login, commit) in [
        (fixture.owner(), true),
        (fixture.owner(), false),
        (fixture.guest(), true),
    ] {
        let mut transaction = fixture
            .users
            .begin(&login, Mode::ReadWrite, &options)
            .await
            .unwrap();
        let mut bound = Sql::new(LITTER).bound;
        bound.sets.push(Vec::new());
        transaction
            .query(&bound, &mut CollectedRows::default())
            .await
            .unwrap();
        if commit {
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
        }
        assert_eq!(
            found(&fixture, &login).await,
            NOTHING,
            "{:?} {commit}",
            login.role_use
        );
    }
}

#[tokio::test]
async fn another_token_of_the_same_user_finds_a_fresh_session() {
    let fixture = fixture("other_token").await;
    let mut other = fixture.owner();
    other.role_use = RoleUse::User(99);
    // The lexer takes this read for pure, but the view that it reads is not.
    fixture
        .admin
        .batch_execute(
            "create view v as select set_config('tidegate.secret', 'mine', false) as s;
             grant select on v to public",
        )
        .await
        .unwrap();
    Sql::new("select s from v")
        .run(&fixture, &fixture.owner())
        .await
        .unwrap();
    assert_eq!(found(&fixture, &other).await, NOTHING);
}

#[tokio::test]
async fn our_own_prepared_statements_survive_a_soft_reset() {
    let fixture = fixture("soft").await;
    let owner = fixture.owner();
    fixture
        .admin
        .batch_execute("create table plain (a int); grant all on plain to public")
        .await
        .unwrap();
    for q in ["select 42 as answer", "insert into plain values (1)"] {
        Sql::new(q).run(&fixture, &owner).await.unwrap();
        fixture.rest().await;
    }
    let query = "select count(*) from pg_prepared_statements where statement like 'select 42%'";
    assert_eq!(Sql::new(query).value(&fixture, &owner).await, "1");
}

#[tokio::test]
async fn a_reset_that_a_caller_has_sabotaged_costs_the_caller_the_connection() {
    let fixture = fixture("sabotage").await;
    for login in [fixture.owner(), fixture.guest()] {
        for _ in 0..5 {
            drop(Sql::new("call sabotage()").run(&fixture, &login).await);
            assert_eq!(found(&fixture, &login).await, NOTHING);
        }
    }
}

#[tokio::test]
async fn no_prepared_statement_of_an_anonymous_caller_stays() {
    let fixture = fixture("strangers").await;
    Sql::new("select 42 as answer")
        .run(&fixture, &fixture.guest())
        .await
        .unwrap();
    let query = "select count(*) from pg_prepared_statements where statement like 'select 42%'";
    assert_eq!(Sql::new(query).value(&fixture, &fixture.guest()).await, "0");
}

#[tokio::test]
async fn a_changed_client_encoding_ends_the_connection_not_the_service() {
    let fixture = fixture("encoding").await;
    let owner = fixture.owner();
    for setting in [
        "'client_encoding', 'LATIN1'",
        "'standard_conforming_strings', 'off'",
    ] {
        let change = format!("select set_config({setting}, false)");
        let refused = Sql::new(&change).run(&fixture, &owner).await.unwrap_err();
        assert!(
            matches!(
                refused,
                Error::Input(InputError::StatementNotAllowed { keyword: "SET", .. })
            ),
            "{refused:?}"
        );
        assert_eq!(
            Sql::new("select 'é\\' as e").value(&fixture, &owner).await,
            r#""é\\""#
        );
    }
}
