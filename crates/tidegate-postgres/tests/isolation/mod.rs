//! Attacks by statements that a role may run.

mod logins;

use tidegate_embedded::testing::cluster;
use tidegate_postgres::{Connection, ConnectionState};
use tidegate_sql::statement::Statement;
use tidegate_sql::{InputError, Login, Mode, QueryOptions};

use crate::fixture::{CollectedRows, Fixture, Sql, connect, password, startup};

/// A fixture with a table that only the owner may read, and a table that everyone may use.
async fn fixture(name: &str) -> Fixture {
    let fixture = Fixture::new(name).await;
    fixture
        .admin
        .batch_execute(&format!(
            "create table secret as select 'of the owner' as text;
             alter table secret owner to \"{name}\";
             create table public.open (a int);
             grant all on public.open to public;
             create procedure public.run(text) language plpgsql as
                 'begin execute $1; end';"
        ))
        .await
        .unwrap();
    fixture
}

/// Runs a statement inside a procedure, where the lexer does not see it.
fn hidden(statement: &str) -> Sql {
    let quoted = statement.replace('\'', "''");
    Sql::new(&format!("call public.run('{quoted}')"))
}

async fn me(fixture: &Fixture, login: &Login) -> String {
    Sql::new("select current_user || '|' || session_user")
        .value(fixture, login)
        .await
}

#[tokio::test]
async fn no_statement_of_a_role_becomes_another_role() {
    let name = "becomes";
    let fixture = fixture(name).await;
    for login in [fixture.alice(), fixture.guest()] {
        let before = me(&fixture, &login).await;
        for attack in [
            format!("set role \"{name}\""),
            format!("set session authorization \"{name}\""),
            format!("select set_config('role', '{name}', false)"),
            format!("select set_config('session_authorization', '{name}', false)"),
            format!("set local role \"{name}\""),
        ] {
            let refused = hidden(&attack).refusal(&fixture, &login).await;
            assert!(
                ["42501", "22023"].contains(&refused.as_str()),
                "{attack}: {refused}"
            );
        }
        for attack in ["reset role", "set role none", "reset session authorization"] {
            drop(hidden(attack).run(&fixture, &login).await);
            assert_eq!(me(&fixture, &login).await, before);
        }
        let read = Sql::new("select text from secret")
            .refusal(&fixture, &login)
            .await;
        assert_eq!(read, "42501");
    }
}

#[tokio::test]
async fn a_trigger_of_one_role_cannot_make_another_role_of_the_session() {
    let name = "trigger_role";
    let fixture = fixture(name).await;
    fixture
        .admin
        .batch_execute(&format!(
            "create function jump() returns trigger language plpgsql as $f$ begin
                 perform set_config('role', 'none', true);
                 perform set_config('role', '{name}', true);
                 return new; end $f$;
             create trigger jump before insert on public.open
                 for each row execute function jump();"
        ))
        .await
        .unwrap();
    let alice = fixture.alice();
    assert_eq!(
        Sql::new("insert into open values (1)")
            .refusal(&fixture, &alice)
            .await,
        "42501"
    );
    // The attack is repeated in a transaction, where another statement follows.
    let options = QueryOptions::default();
    let mut transaction = fixture
        .users
        .begin(&alice, Mode::ReadWrite, &options)
        .await
        .unwrap();
    let run = |q: &str| {
        let mut bound = Sql::new(q).bound;
        bound.sets.push(Vec::new());
        bound
    };
    let attack = run("insert into open values (1)");
    assert!(
        transaction
            .query(&attack, &mut CollectedRows::default())
            .await
            .is_err()
    );
    let read = run("select text from secret");
    let error = transaction
        .query(&read, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("25P02"));
}

#[tokio::test]
async fn a_deferred_trigger_runs_as_the_role_that_logged_in() {
    let name = "deferred_role";
    let fixture = fixture(name).await;
    fixture
        .admin
        .batch_execute(&format!(
            "create table seen (who text); grant all on seen to public;
             create function note() returns trigger language plpgsql as $f$ begin
                 insert into public.seen values (current_user); return null; end $f$;
             create constraint trigger note after insert on public.open
                 deferrable initially deferred for each row execute function note();
             create function definer() returns void language sql security definer
                 as 'insert into public.open values (1)';
             alter function definer() owner to \"{name}\"; "
        ))
        .await
        .unwrap();
    Sql::new("select definer()")
        .run(&fixture, &fixture.alice())
        .await
        .unwrap();
    let seen = fixture.value("select string_agg(who, ',') from seen").await;
    assert!(
        [format!("{name}/alice"), name.to_owned()].contains(&seen),
        "{seen}"
    );
}

#[tokio::test]
async fn a_definer_function_cannot_leave_its_role() {
    let name = "definer";
    let fixture = fixture(name).await;
    fixture
        .admin
        .batch_execute(&format!(
            "create function leave(to_role text) returns void language plpgsql
                 security definer as $f$ begin execute 'set role ' || to_role; end $f$;
             alter function leave(text) owner to \"{name}\";"
        ))
        .await
        .unwrap();
    for role in ["none", "postgres"] {
        let attack = Sql::new(&format!("select leave('{role}')"));
        assert_eq!(
            attack.refusal(&fixture, &fixture.alice()).await,
            "42501",
            "{role}"
        );
    }
}

#[tokio::test]
async fn settings_that_a_role_gives_itself_do_not_reach_the_next_connection() {
    let name = "brick";
    let fixture = fixture(name).await;
    for login in [fixture.guest(), fixture.alice()] {
        let role = login.role.as_str();
        for setting in [
            "local_preload_libraries = 'nonsense'",
            "statement_timeout = '7min'",
            "search_path = pg_temp",
            "TimeZone = 'Asia/Tokyo'",
            "default_transaction_read_only = on",
            "client_encoding = 'LATIN1'",
            "standard_conforming_strings = off",
            "row_security = off",
        ] {
            let attack = format!("alter role \"{role}\" set {setting}");
            drop(hidden(&attack).run(&fixture, &login).await);
        }
        fixture.users.pool().close(&login.database);
        let settings = "select concat_ws('|', current_setting('statement_timeout'),
            current_setting('search_path'), current_setting('TimeZone'),
            current_setting('default_transaction_read_only'),
            current_setting('client_encoding'), current_setting('row_security'))";
        // The operator decides about writes and their time limit. Only if anonymous callers share
        // the role does the service set these settings (`StartupParameters::defaults`).
        let expected = r#""7min|\"$user\", public|UTC|on|UTF8|on""#;
        assert_eq!(Sql::new(settings).value(&fixture, &login).await, expected);
    }
}

#[tokio::test]
async fn a_role_reaches_no_file_no_program_and_no_replication() {
    let fixture = fixture("reach").await;
    for login in [fixture.guest(), fixture.alice(), fixture.owner()] {
        for attack in [
            "select pg_read_file('/etc/passwd')",
            "select pg_ls_dir('.')",
            "select lo_import('/etc/passwd')",
            "select pg_create_logical_replication_slot('s', 'test_decoding')",
            "create extension dblink",
            "create role more",
            "create database more",
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'",
        ] {
            let refused = Sql::new(attack).refusal(&fixture, &login).await;
            assert_eq!(refused, "42501", "{attack} as {}", login.role);
        }
        for attack in [
            "alter role postgres password 'x'",
            "copy open to program 'true'",
            "copy open from '/etc/passwd'",
        ] {
            let refused = hidden(attack).refusal(&fixture, &login).await;
            assert_eq!(refused, "42501", "{attack} as {}", login.role);
        }
    }
}

#[tokio::test]
async fn a_shared_role_neither_changes_itself_nor_runs_a_block() {
    let fixture = fixture("shared_kinds").await;
    let options = QueryOptions::default();
    for attack in [
        "do $$ begin perform 1; end $$",
        "alter role current_user set work_mem = '1MB'",
        "alter user current_user password 'mine'",
    ] {
        Sql::new(attack)
            .run(&fixture, &fixture.alice())
            .await
            .unwrap();
        let mut bound = Sql::new(attack).bound;
        bound.sets.push(Vec::new());
        let (guest, mut rows) = (fixture.guest(), CollectedRows::default());
        let alone = fixture
            .users
            .query(&guest, &bound, &options, &mut rows)
            .await;
        let described = fixture.users.describe(&guest, &bound, &options).await;
        let begun = fixture.users.begin(&guest, Mode::ReadWrite, &options).await;
        let within = begun.unwrap().query(&bound, &mut rows).await;
        for refused in [alone.map(drop), described.map(drop), within.map(drop)] {
            let error = refused.unwrap_err();
            let expected = matches!(
                error,
                tidegate_sql::Error::Input(InputError::StatementNotAllowed { .. })
            );
            assert!(expected, "{attack}: {error:?}");
        }
    }
}

#[tokio::test]
async fn transaction_control_is_refused_before_postgresql_sees_it() {
    for attack in [
        "commit",
        "/* c */ rollback",
        "-- c\nend",
        "abort",
        "begin",
        "start transaction",
        "savepoint s",
        "release s",
        "prepare transaction 'x'",
        "commit prepared 'x'",
        "commit and chain",
        "copy open from stdin",
        "listen x",
        "discard all",
        "deallocate all",
    ] {
        let refused = Statement::parse(attack);
        assert!(
            matches!(refused, Err(InputError::StatementNotAllowed { .. })),
            "{attack}"
        );
    }
}

#[tokio::test]
async fn a_procedure_cannot_end_the_transaction_around_it() {
    let fixture = fixture("ends").await;
    let owner = fixture.owner();
    Sql::new("create procedure ends() language plpgsql as $$ begin commit; end $$")
        .run(&fixture, &owner)
        .await
        .unwrap();
    let options = QueryOptions::default();
    for attack in [
        "call ends()",
        "do $$ begin commit; end $$",
        "do $$ begin rollback; end $$",
    ] {
        let mut transaction = fixture
            .users
            .begin(&owner, Mode::ReadWrite, &options)
            .await
            .unwrap();
        let run = |q: &str| {
            let mut bound = Sql::new(q).bound;
            bound.sets.push(Vec::new());
            bound
        };
        let insert = run("insert into open values (1)");
        transaction
            .query(&insert, &mut CollectedRows::default())
            .await
            .unwrap();
        let error = transaction
            .query(&run(attack), &mut CollectedRows::default())
            .await
            .unwrap_err();
        assert_eq!(error.sqlstate(), Some("2D000"), "{attack}");
        drop(transaction);
        assert_eq!(
            Sql::new("select count(*) from open")
                .value(&fixture, &owner)
                .await,
            "0"
        );
    }
}

#[tokio::test]
async fn a_snapshot_cannot_be_made_writable() {
    let fixture = fixture("writable").await;
    let owner = fixture.owner();
    let options = QueryOptions::default();
    let mut snapshot = fixture
        .users
        .begin(&owner, Mode::Snapshot, &options)
        .await
        .unwrap();
    let run = |q: &str| {
        let mut bound = Sql::new(q).bound;
        bound.sets.push(Vec::new());
        bound
    };
    let read = run("select 1 as one from open");
    snapshot
        .query(&read, &mut CollectedRows::default())
        .await
        .unwrap();
    let flip = run("select set_config('transaction_read_only', 'off', true)");
    let error = snapshot
        .query(&flip, &mut CollectedRows::default())
        .await
        .unwrap_err();
    assert_eq!(error.sqlstate(), Some("25001"));
}

#[tokio::test]
async fn a_forged_temporary_table_reaches_no_other_caller() {
    let fixture = fixture("forged").await;
    fixture
        .admin
        .batch_execute("grant temp on database forged to public")
        .await
        .unwrap();
    for login in [fixture.guest(), fixture.alice()] {
        hidden("create temp table open as select 666 as a")
            .run(&fixture, &login)
            .await
            .unwrap();
        let count = Sql::new("select count(*) from open")
            .value(&fixture, &login)
            .await;
        assert_eq!(count, "0", "{:?}", login.role_use);
    }
}

#[tokio::test]
async fn a_role_without_temp_makes_no_temporary_table() {
    let fixture = fixture("no_temp").await;
    let attack = Sql::new("create temp table t (a int)");
    assert_eq!(attack.refusal(&fixture, &fixture.guest()).await, "42501");
}

#[tokio::test]
async fn a_role_of_one_tenant_cannot_connect_to_another_tenants_database() {
    let one = fixture("tenant_one").await;
    let _two = fixture("tenant_two").await;
    let (config, password) = (one.tcp(), password("tenant_one"));
    let error = Connection::open(&config, "tenant_two", "tenant_one", &password, &startup())
        .await
        .unwrap_err();
    assert_eq!(error.fault(), tidegate_wire::ConnectFault::AccessDenied);
}

#[tokio::test]
async fn the_pins_of_a_session_are_what_a_reset_returns_to() {
    let fixture = fixture("startup").await;
    let role = "startup/alice";
    let mut connection =
        Connection::open(&fixture.tcp(), "startup", role, &password(role), &startup())
            .await
            .unwrap();
    assert_eq!(connection.state(), ConnectionState::Idle);
    assert!(connection.is_open());
    let admin = connect(&cluster().url("startup")).await;
    let query = "select application_name from pg_stat_activity where pid = $1";
    let row = admin
        .query_one(query, &[&connection.backend().process_id])
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "tidegate");
    connection.close().await;
    let gone = admin.query_opt(query, &[]).await;
    assert!(gone.is_err() || gone.unwrap().is_none());
}
