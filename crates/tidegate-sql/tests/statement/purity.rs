//! Which statements only read, and which may call functions of the database.

use tidegate_sql::Statement;
use tidegate_sql::statement::Purity;

use super::read;

#[test]
fn only_what_reads_by_its_text_is_a_read() {
    for q in [
        "select 1",
        "(values (1))",
        "table t",
        "with a as (select 1) table a",
        "show work_mem",
        "explain select 1",
        "explain analyze select 1",
    ] {
        assert!(read(q).is_read(), "{q}");
    }
    for q in [
        "do $$ begin end $$",
        "call p()",
        "select 1 into t",
        "explain analyze insert into t values (1)",
        "with a as (delete from t returning *) table a",
        "set work_mem = '1GB'",
        "create temp table t as select 1",
        "lock table t",
        "declare c cursor for select 1",
    ] {
        assert!(!read(q).is_read(), "{q}");
    }
}

#[test]
fn only_reads_with_known_calls_are_stateless() {
    for q in [
        "select 1",
        "select * from artists where id = :id",
        "select count(*), lower(name) from t group by rollup (a, b), c order by (name)",
        "select a::int, cast(b as numeric(8,2)), date '2020-01-01', interval '1 day', c::int[]",
        "select pg_catalog.lower(a), x::pg_catalog.text, 1::double precision",
        "select * from (values (1), (2)) as v(a) join (select 2) w on (true) where a in (1) and not (a = any (:b))",
        "with recursive n(i) as (select 1 union all (select i from n)) select sum(i) filter (where i > 1) over (partition by (i)) from n",
        "with a as materialized (select 1), b as not materialized (select 2) select exists (table a)",
        "select array(select 1), row(1, 2), coalesce(a, 'x'), extract(year from b), substring(a from 2 for 3)",
        "select 'a' 'b', E'x', a like 'x%' escape '!', now() at time zone 'UTC', timestamp with time zone '2020-01-01'",
        "select percentile_cont(0.5) within group (order by a) from t group by grouping sets ((a), (b))",
        "explain select 1",
        "show all",
        "select a.\"b\" from lateral (select 1) as a(\"b\")",
        "select x from t left join (u cross join v) on a = b order by 1 limit (1) offset (2)",
        "select cast(:a as text) as \"label\", (:b)",
    ] {
        assert_eq!(read(q).purity(), Purity::Stateless, "{q}");
    }
    for q in [
        "select set_config('role', 'x', false)",
        "select Set_Config('role', 'x', false)",
        "select pg_catalog.set_config('role', 'x', false)",
        "select pg_advisory_lock(1)",
        "select nextval('s')",
        "select setseed(0)",
        "select my_function()",
        "select \"lower\"(a)",
        "select public.lower(a)",
        "select lower . lower (a)",
        "select a.b.lower(a)",
        "select 1::my_domain",
        "select 1::public.text",
        "select 1::text.my_domain",
        "select 1::\"text\"",
        "select cast(1 as my_domain)",
        "select cast((select 1) as my_domain)",
        "select my_domain '1'",
        "select public.date '1'",
        "select \"date\" '1'",
        "select 1 operator(public.+) 2",
        "select over(1)",
        "select filter(1), join(1)",
        "select by(1)",
        "select my_function /* x */ -- y\n (1)",
        "select query_to_xml('select f()', true, true, '')",
        "select 1 into t",
        "with a as (insert into t values (1)) select 1",
        // A write may run triggers, however simple it is.
        "insert into t values (1)",
        "insert into t (a) values (:a) returning a",
        "update t set a = 1 where b = 2",
        "delete from t",
        "merge into t using u on true when matched then delete",
        "create table t (a int)",
        "do $$begin end$$",
        "explain analyze insert into t values (1)",
        "explain insert into t values (f())",
        "select U&\"\\006c\"(1)",
        "select 1 union select my_function()",
        "select (42::bigint).pg_advisory_lock",
        "select (select 42).pg_advisory_lock",
        "select :a.pg_advisory_lock",
        "select array[1] [1].nextval",
        "select x.pg_advisory_lock from generate_series(1, 2) as x",
        "select x.\"setseed\" from t as x",
        "select x.U&\"nextv\\0061l\" from t as x",
    ] {
        assert_eq!(read(q).purity(), Purity::Stateful, "{q}");
    }
}

#[test]
fn calls_of_the_functions_of_claims_are_stateless_but_marked() {
    for q in [
        "select tidegate.user_id()",
        "select (tidegate.claims() ->> 'a')::int, lower(tidegate.claim('x'::text))",
        "table t where a = ( select Tidegate.User_Id() as user_id)",
    ] {
        let statement = read(q);
        assert_eq!(statement.purity(), Purity::Stateless, "{q}");
        assert!(statement.calls_claims() && !statement.is_plain(), "{q}");
    }
    for q in [
        "select other.user_id()",
        "select x.tidegate.user_id()",
        "select \"x\".tidegate.claims()",
        "select \"tidegate\".user_id()",
        "select tidegate.\"claim\"('x')",
        "select other_tidegate.claims()",
        "select ätidegate.claims()",
        "select tidegate.user_ids()",
        "select tidegate.other(), tidegate.claims()",
    ] {
        assert_eq!(read(q).purity(), Purity::Stateful, "{q}");
    }
    assert!(!read("select user_id, tidegate.claims from tidegate").calls_claims());
}

#[test]
fn the_purity_of_a_text_around_an_expression_is_that_of_the_expression() {
    let around = |condition: &str| {
        let text = format!("select own.f(null::own.t, :rows) where {condition}");
        Statement::around(&text, condition).unwrap()
    };
    for (condition, purity, claims) in [
        ("(a > 1)", Purity::Stateless, false),
        (
            "(a = ( SELECT tidegate.user_id() AS user_id))",
            Purity::Stateless,
            true,
        ),
        ("(a = public.f())", Purity::Stateful, false),
        ("(a = 'x'::public.mood)", Purity::Stateful, false),
    ] {
        let statement = around(condition);
        assert_eq!(statement.purity(), purity, "{condition}");
        assert_eq!(statement.calls_claims(), claims, "{condition}");
        assert!(statement.fills_rows() && statement.placeholders() == ["rows"]);
    }
    assert!(Statement::around("select 1", "'unfinished").is_err());
    assert!(!read("select 1").fills_rows());
}

#[test]
fn reads_that_may_call_user_defined_functions_are_recognised() {
    let calls = |q: &str| tidegate_sql::Statement::parse(q).unwrap().calls();
    for q in [
        "select make_table()",
        "select 'a'::mood, public.make_table('x')",
        "select * from \"Make\"('x')",
        "select (4242).make_table",
        "with a as (select 1) select make(a.*) from a",
        "explain analyze select make_table()",
    ] {
        assert!(calls(q), "{q}");
    }
    for q in [
        "select 'sad'::mood, cast(a as mood) from t where b = mood 'glad'",
        "select count(*), lower(t.name) from t where id in (1, 2)",
        "insert into t (a) values (make())",
        "create table t (a int)",
    ] {
        assert!(!calls(q), "{q}");
    }
}

#[test]
fn a_write_is_plain_that_calls_nothing_of_the_databases_own() {
    for q in [
        "insert into t values (:a, :b)",
        "insert into t (a, b) values (:a, 5) returning id",
        "INSERT INTO public.t (a) SELECT lower(x) FROM y",
        "insert into \"T\" (a) values (1) on conflict do nothing",
        "update t set a = 1, b = now() where id in (1, 2)",
        "delete from t using u where (t.id = u.id)",
        "with gone (id) as (delete from t returning id) insert into u (id) select id from gone",
    ] {
        assert!(read(q).is_plain(), "{q}");
    }
    for q in [
        "insert into t values (set_config('search_path', 'x', true))",
        "insert into t (a) select own(1)",
        "insert into t (a) values (:a::public.d)",
        "update t set a = s.f(a)",
        "select own()",
        "insert into t select f(x) from into_u (x)",
    ] {
        assert!(!read(q).is_plain(), "{q}");
    }
}

#[test]
fn a_text_that_asks_who_logged_in_is_recognised() {
    for (q, expected) in [
        ("select session_user", true),
        ("select * from mail where owner = Session_User", true),
        ("select current_setting('session_authorization')", true),
        ("select system_user", true),
        ("select U&\"\\0073ession_user\"", true),
        (
            "select session_users.id, session_user from session_users",
            true,
        ),
        (
            "select session_user_id, my_session_user, system_user$ from session_users",
            false,
        ),
        ("select current_user, session_id, user", false),
        ("select a & b from u", false),
    ] {
        let statement = tidegate_sql::Statement::parse(q).unwrap();
        assert_eq!(statement.names_login(), expected, "{q}");
    }
}
