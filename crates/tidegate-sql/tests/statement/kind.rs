//! Tests of the kind of a statement, and of whether it may leave session state.

use tidegate_sql::InputError;
use tidegate_sql::statement::Kind;

use super::{read, refused};

#[test]
fn the_first_keyword_decides_the_kind() {
    for (q, kind) in [
        ("select 1", Kind::Read),
        ("SELECT 1", Kind::Read),
        ("-- x\n /* y */ select 1", Kind::Read),
        ("(select 1) union (select 2)", Kind::Read),
        ("values (1)", Kind::Read),
        ("table t", Kind::Read),
        ("show search_path", Kind::Read),
        ("select 1 from t for update", Kind::Read),
        ("(select 1 from t) for update skip locked", Kind::Read),
        ("select 1 into t", Kind::Other),
        ("select 1 as into", Kind::Read),
        ("explain select 1", Kind::Read),
        ("explain insert into t values (1)", Kind::Read),
        ("explain analyze select 1", Kind::Read),
        ("explain (costs off) (select 1)", Kind::Read),
        ("explain ((select 1))", Kind::Read),
        (
            "explain analyze verbose insert into t values (1)",
            Kind::Other,
        ),
        ("explain (costs, analyze) delete from t", Kind::Other),
        ("insert into t values (1)", Kind::Write),
        ("update t set a = 1", Kind::Write),
        ("delete from t", Kind::Write),
        (
            "merge into t using u on true when matched then delete",
            Kind::Write,
        ),
        ("with a as (select 1) select * from a", Kind::Read),
        (
            "with a as (select 1) select * from a for update of a",
            Kind::Read,
        ),
        (
            "with a as (select 1 for no key update nowait) select * from a",
            Kind::Read,
        ),
        (
            "with a as (insert into t values (1) returning *) select * from a",
            Kind::Write,
        ),
        (
            "with a as not materialized (delete from t returning *) table a",
            Kind::Write,
        ),
        ("with a as (update t set a = 1) select 1", Kind::Write),
        (
            "with a as (select 1) insert into t select * from a",
            Kind::Write,
        ),
        ("with a as (select 1) update t set a = 1", Kind::Write),
        (
            "with recursive a as (select 1) cycle x set y using z update t set a = 1",
            Kind::Write,
        ),
        (
            "with a as (with b as (select 1) update t set a = 1) select 1",
            Kind::Write,
        ),
        ("with update as (select 1) select * from update", Kind::Read),
        (
            "with recursive x as (with recursive y(a) as (select 1) \
             search depth first by a set ord update t set n = n + 1 returning n) table x",
            Kind::Write,
        ),
        (
            "with recursive x as (with recursive y(a) as (select 1) \
             cycle a set c using p update only t set n = n + 1 returning n) table x",
            Kind::Write,
        ),
        (
            "with recursive x as (with recursive y(key) as (select 1) \
             search breadth first by key set key update \"t\" set n = 1 returning n) table x",
            Kind::Write,
        ),
        (
            "with a as (select 1) (select * from t for no key update of t)",
            Kind::Read,
        ),
        (
            "with a as (select 1) select t.update x, 1 as update from t for update skip locked",
            Kind::Read,
        ),
        // The statement counts as a write, because it is not certainly a read.
        ("with a as (select 1) select update x from t", Kind::Write),
        ("select update x from t", Kind::Read),
        ("do $$begin end$$", Kind::Procedural),
        ("call p(1)", Kind::Procedural),
        ("create table t (a int)", Kind::Other),
        ("create table t as select 1", Kind::Other),
        ("vacuum", Kind::Other),
        ("set statement_timeout = 0", Kind::Other),
        ("set local work_mem = '1MB'", Kind::Other),
        ("set constraints all deferred", Kind::Other),
        ("reset all", Kind::Other),
        ("declare c cursor for select 1", Kind::Other),
        ("fetch all from c", Kind::Other),
        ("selectx", Kind::Other),
    ] {
        assert_eq!(read(q).kind(), kind, "{q}");
    }
}

#[test]
fn refused_kinds_are_named_with_a_reason() {
    for (q, expected) in [
        ("begin", "BEGIN"),
        ("/*c*/ Begin;", "BEGIN"),
        ("start transaction", "START TRANSACTION"),
        ("commit", "COMMIT"),
        ("commit and chain", "COMMIT"),
        ("commit prepared 'x'", "COMMIT PREPARED"),
        ("END", "END"),
        ("/*c*/ rollback", "ROLLBACK"),
        ("-- c\nrollback to a", "ROLLBACK"),
        ("rollback prepared 'x'", "ROLLBACK PREPARED"),
        ("abort", "ABORT"),
        ("savepoint a", "SAVEPOINT"),
        ("release a", "RELEASE SAVEPOINT"),
        ("prepare transaction 'x'", "PREPARE TRANSACTION"),
        ("prepare x as select 1", "PREPARE"),
        ("execute x", "EXECUTE"),
        ("explain execute x", "EXECUTE"),
        ("create temp table t (a) as execute x", "EXECUTE"),
        ("deallocate all", "DEALLOCATE"),
        ("copy t to stdout", "COPY"),
        ("copy (select 1) to program 'x'", "COPY"),
        ("listen a", "LISTEN"),
        ("unlisten *", "UNLISTEN"),
        ("notify a, 'b'", "NOTIFY"),
        ("discard all", "DISCARD"),
        ("load 'x'", "LOAD"),
        ("set role none", "SET ROLE"),
        ("set local role x", "SET ROLE"),
        ("set session role x", "SET ROLE"),
        ("set \"role\" = 'x'", "SET ROLE"),
        ("set \"ROLE\" to x", "SET ROLE"),
        ("set U&\"r\\006fle\" = 'x'", "SET ROLE"),
        ("set u&\"\\+000072ole\" = 'x'", "SET ROLE"),
        ("set local U&\"!0072ole\" uescape '!' to x", "SET ROLE"),
        ("reset U&\"r\\006fle\"", "RESET ROLE"),
        (
            "set U&\"session\\005fauthorization\" = 'x'",
            "SET SESSION AUTHORIZATION",
        ),
        (
            "reset U&\"transaction\\005fread_only\"",
            "RESET TRANSACTION",
        ),
        ("set role = 'x'", "SET ROLE"),
        ("reset role", "RESET ROLE"),
        ("set session authorization x", "SET SESSION AUTHORIZATION"),
        (
            "set local session authorization x",
            "SET SESSION AUTHORIZATION",
        ),
        (
            "set session_authorization to x",
            "SET SESSION AUTHORIZATION",
        ),
        ("reset session authorization", "RESET SESSION AUTHORIZATION"),
        (
            "set session characteristics as transaction read only",
            "SET SESSION CHARACTERISTICS",
        ),
        ("set session search_path = x", "SET SESSION"),
        ("set transaction read write", "SET TRANSACTION"),
        ("set local transaction read write", "SET TRANSACTION"),
        ("reset transaction_isolation", "RESET TRANSACTION"),
    ] {
        match refused(q) {
            InputError::StatementNotAllowed { keyword, reason } => {
                assert_eq!(keyword, expected, "{q}");
                assert!(reason.len() > 10, "{q}");
            }
            other => panic!("{q}: {other}"),
        }
    }
}

#[test]
fn a_shared_role_may_not_run_what_changes_the_role_or_hides_its_text() {
    for (q, expected) in [
        ("do $$ begin end $$", "DO"),
        ("/* c */ Do language plpgsql 'begin end'", "DO"),
        ("alter role current_user set work_mem = '1GB'", "ALTER ROLE"),
        ("ALTER USER \"shop/guest\" password 'x'", "ALTER USER"),
        ("alter user mapping set work_mem = '1GB'", "ALTER USER"),
        ("alter group g add user x", "ALTER GROUP"),
        (
            "alter default privileges grant select on tables to public",
            "ALTER DEFAULT PRIVILEGES",
        ),
        ("drop owned by current_user", "DROP OWNED"),
        ("reassign owned by current_user to x", "REASSIGN OWNED"),
        ("grant \"db/guest\" to someone", "GRANT"),
        ("revoke select on t from public", "REVOKE"),
    ] {
        match read(q).check_for_shared_role() {
            Err(InputError::StatementNotAllowed { keyword, .. }) => {
                assert_eq!(keyword, expected, "{q}");
            }
            other => panic!("{q}: {other:?}"),
        }
    }
    for q in [
        "select 1",
        "call p()",
        "alter table role add a int",
        "alter user mapping for current_user server s options (set user 'x')",
        "insert into t values ('do')",
        "select 1 as do",
    ] {
        assert!(read(q).check_for_shared_role().is_ok(), "{q}");
    }
}
