//! What a request leaves in its session, and how little of it the next one finds.

mod names;
mod suspects;

use tidegate_sql::{Error, InputError, Login, Mode, QueryOptions, RoleUse};

use crate::stage::{Gathered, Sql, Stage};

/// Leaves everything in the session that a session can hold.
const LITTER: &str = "call public.litter_all()";

/// What [`LITTER`] calls.
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

/// Makes the reset behind it time out.
const SABOTAGE: &str = "create procedure sabotage() language plpgsql as $$ begin
    create temp table artists as select 'forged' as name;
    perform set_config('statement_timeout', '1', false);
    perform pg_advisory_lock(g) from generate_series(1, 2000) g;
    exception when query_canceled then null; end $$";

/// What is left of it.
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

async fn stage(name: &str) -> Stage {
    let stage = Stage::new(name).await;
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
    stage.admin.batch_execute(setup).await.unwrap();
    for procedure in [LITTERING, SABOTAGE] {
        stage.admin.batch_execute(procedure).await.unwrap();
    }
    let grant = format!("grant temp on database \"{name}\" to public");
    stage.admin.batch_execute(&grant).await.unwrap();
    stage
}

async fn found(stage: &Stage, login: &Login) -> String {
    Sql::new(FOUND).value(stage, login).await
}

#[tokio::test]
async fn nothing_survives_a_procedure() {
    let stage = stage("litter").await;
    for login in [stage.owner(), stage.guest()] {
        Sql::new(LITTER).run(&stage, &login).await.unwrap();
        assert_eq!(found(&stage, &login).await, NOTHING, "{:?}", login.role_use);
        let used = Sql::new("select currval('numbers')")
            .refusal(&stage, &login)
            .await;
        assert_eq!(used, "55000", "sequence values are gone too");
    }
}

#[tokio::test]
async fn nothing_survives_a_function_or_a_trigger() {
    let stage = stage("litter_function").await;
    for login in [stage.owner(), stage.guest()] {
        for q in ["select litter()", "insert into t values (1)"] {
            Sql::new(q).run(&stage, &login).await.unwrap();
            assert_eq!(
                found(&stage, &login).await,
                NOTHING,
                "{q} {:?}",
                login.role_use
            );
        }
    }
}

#[tokio::test]
async fn what_triggers_of_a_plain_write_leave_does_not_stay() {
    let stage = stage("litter_writes").await;
    let triggers = "create table w (a int); grant all on w to public;
        create function litter_rows() returns trigger language plpgsql as $f$ begin
            perform set_config('tidegate.secret', tg_op, false); return null; end $f$;
        create trigger litter after insert or update or delete on w
            for each row execute function litter_rows()";
    stage.admin.batch_execute(triggers).await.unwrap();
    for login in [stage.owner(), stage.alice(), stage.guest()] {
        for q in [
            "insert into w values (1)",
            "update w set a = 2",
            "delete from w",
        ] {
            // The first time is not the second: then it is known, and sent in one write.
            for _ in 0..3 {
                Sql::new(q).run(&stage, &login).await.unwrap();
                let found = found(&stage, &login).await;
                assert_eq!(found, NOTHING, "{q} {:?}", login.role_use);
            }
            Sql::new("insert into w values (1)")
                .run(&stage, &login)
                .await
                .unwrap();
        }
    }
}

#[tokio::test]
async fn nothing_is_prepared_in_a_session_that_strangers_share() {
    let stage = stage("discarded").await;
    let guest = stage.guest();
    for q in ["select 1", "insert into t values (1)", "call litter_all()"] {
        Sql::new(q).run(&stage, &guest).await.unwrap();
        // Neither by a caller nor by the service: a name can be found, and used.
        let prepared = Sql::new("select count(*) from pg_prepared_statements");
        assert_eq!(prepared.value(&stage, &guest).await, "0", "{q}");
    }
}

#[tokio::test]
async fn nothing_survives_a_transaction() {
    let stage = stage("litter_tx").await;
    let options = QueryOptions::default();
    for (login, commit) in [
        (stage.owner(), true),
        (stage.owner(), false),
        (stage.guest(), true),
    ] {
        let mut transaction = stage
            .roles
            .begin(&login, Mode::ReadWrite, &options)
            .await
            .unwrap();
        let mut bound = Sql::new(LITTER).bound;
        bound.sets.push(Vec::new());
        transaction
            .query(&bound, &mut Gathered::default())
            .await
            .unwrap();
        if commit {
            transaction.commit().await.unwrap();
        } else {
            drop(transaction);
        }
        assert_eq!(
            found(&stage, &login).await,
            NOTHING,
            "{:?} {commit}",
            login.role_use
        );
    }
}

#[tokio::test]
async fn another_token_of_the_same_user_finds_a_fresh_session() {
    let stage = stage("other_token").await;
    let mut other = stage.owner();
    other.role_use = RoleUse::User(99);
    // A read that the lexer takes for harmless, through a view that is not.
    stage
        .admin
        .batch_execute(
            "create view v as select set_config('tidegate.secret', 'mine', false) as s;
             grant select on v to public",
        )
        .await
        .unwrap();
    Sql::new("select s from v")
        .run(&stage, &stage.owner())
        .await
        .unwrap();
    assert_eq!(found(&stage, &other).await, NOTHING);
}

#[tokio::test]
async fn our_own_prepared_statements_survive_a_soft_reset() {
    let stage = stage("soft").await;
    let owner = stage.owner();
    stage
        .admin
        .batch_execute("create table plain (a int); grant all on plain to public")
        .await
        .unwrap();
    for q in ["select 42 as answer", "insert into plain values (1)"] {
        Sql::new(q).run(&stage, &owner).await.unwrap();
        stage.rest().await;
    }
    let query = "select count(*) from pg_prepared_statements where statement like 'select 42%'";
    assert_eq!(Sql::new(query).value(&stage, &owner).await, "1");
}

#[tokio::test]
async fn a_reset_that_a_caller_has_sabotaged_costs_the_caller_the_connection() {
    let stage = stage("sabotage").await;
    for login in [stage.owner(), stage.guest()] {
        for _ in 0..5 {
            drop(Sql::new("call sabotage()").run(&stage, &login).await);
            assert_eq!(found(&stage, &login).await, NOTHING);
        }
    }
}

#[tokio::test]
async fn no_prepared_statement_of_a_stranger_stays() {
    let stage = stage("strangers").await;
    Sql::new("select 42 as answer")
        .run(&stage, &stage.guest())
        .await
        .unwrap();
    let query = "select count(*) from pg_prepared_statements where statement like 'select 42%'";
    assert_eq!(Sql::new(query).value(&stage, &stage.guest()).await, "0");
}

#[tokio::test]
async fn a_changed_client_encoding_ends_the_connection_not_the_service() {
    let stage = stage("encoding").await;
    let owner = stage.owner();
    for setting in [
        "'client_encoding', 'LATIN1'",
        "'standard_conforming_strings', 'off'",
    ] {
        let change = format!("select set_config({setting}, false)");
        let refused = Sql::new(&change).run(&stage, &owner).await.unwrap_err();
        assert!(
            matches!(
                refused,
                Error::Input(InputError::StatementNotAllowed { keyword: "SET", .. })
            ),
            "{refused:?}"
        );
        assert_eq!(
            Sql::new("select 'é\\' as e").value(&stage, &owner).await,
            r#""é\\""#
        );
    }
}
