//! Tests of parsing and binding statements.

mod binding;
mod generated;
mod kind;
mod purity;

use tidegate_sql::{InputError, Statement};

fn read(q: &str) -> Statement {
    Statement::parse(q).unwrap_or_else(|error| panic!("{q}: {error}"))
}

/// Checks the text for PostgreSQL and the placeholders of the statement `q`.
fn check(q: &str, text: &str, placeholders: &[&str]) {
    let statement = read(q);
    assert_eq!(statement.text(), text, "{q}");
    assert_eq!(statement.placeholders(), placeholders, "{q}");
}

fn check_unchanged(q: &str) {
    check(q, q, &[]);
}

fn refused(q: &str) -> InputError {
    match Statement::parse(q) {
        Err(error) => error,
        Ok(statement) => panic!("{q} was read as {statement:?}"),
    }
}

fn unreadable(q: &str, at: usize) {
    match refused(q) {
        InputError::UnreadableStatement { position, .. } => assert_eq!(position, at, "{q}"),
        other => panic!("{q}: {other}"),
    }
}

#[test]
fn placeholders_become_numbers_in_the_order_of_first_use() {
    check("select :a", "select $1", &["a"]);
    check("select :b, :a, :b", "select $1, $2, $1", &["b", "a"]);
    check(
        "select :a::int, :a ::int",
        "select $1::int, $1 ::int",
        &["a"],
    );
    check("select :_x1+:Y_2", "select $1+$2", &["_x1", "Y_2"]);
    check(
        "select a from t where b=:b and(c=:c)",
        "select a from t where b=$1 and(c=$2)",
        &["b", "c"],
    );
    check(
        "select meta ? :key from t",
        "select meta ? $1 from t",
        &["key"],
    );
    check(
        "select meta ?:key, d @>:d",
        "select meta ?$1, d @>$2",
        &["key", "d"],
    );
    check(
        "select f(a=>:a, b:=:b)",
        "select f(a=>$1, b:=$2)",
        &["a", "b"],
    );
    check(
        "select case when :a then :b else :c end",
        "select case when $1 then $2 else $3 end",
        &["a", "b", "c"],
    );
    check("select 'é', :a", "select 'é', $1", &["a"]);
    check("select (:a)::text", "select ($1)::text", &["a"]);
    check(
        "insert into t values (:a,:b) returning id",
        "insert into t values ($1,$2) returning id",
        &["a", "b"],
    );
    check("select ::a", "select ::a", &[]);
}

#[test]
fn a_colon_that_begins_no_name_stays() {
    check_unchanged("select a::int, b :: text, '1'::int8");
    check_unchanged("select f(a := 1)");
    check_unchanged("select 1:2");
    check_unchanged("select : a");
    check_unchanged("select :1");
    check_unchanged("select :é");
}

#[test]
fn a_colon_behind_an_operand_in_brackets_is_a_slice() {
    check_unchanged("select x[1:2], x[a:b], x[a :b], x[1:n]");
    check_unchanged("select x[:2], x[2:], x[:], x[f(1):n], x[y[1]:n]");
    check_unchanged("select x[\"a\":b], x[case when true then 1 end:n]");
    check(
        "select x[(:lo):(:hi)]",
        "select x[($1):($2)]",
        &["lo", "hi"],
    );
    check("select x[:lo:2]", "select x[$1:2]", &["lo"]);
    check("select x[:lo:hi]", "select x[$1:hi]", &["lo"]);
    check("select x[:lo::int:hi]", "select x[$1::int:hi]", &["lo"]);
    check("select x[1: :hi]", "select x[1: $1]", &["hi"]);
    check("select array[:a,:b]", "select array[$1,$2]", &["a", "b"]);
    check(
        "select array[1,:a::int, 2 +:b]",
        "select array[1,$1::int, 2 +$2]",
        &["a", "b"],
    );
    check(
        "select array[case when :a then :b else :c end, f(:d)]",
        "select array[case when $1 then $2 else $3 end, f($4)]",
        &["a", "b", "c", "d"],
    );
    check(
        "select x[f(a, :b)], (:c)",
        "select x[f(a, $1)], ($2)",
        &["b", "c"],
    );
}

#[test]
fn what_is_quoted_is_not_read() {
    check_unchanged("select ':a', 'it''s :a', ''");
    check_unchanged(r"select 'ends with a backslash \', ':a'");
    check_unchanged(r"select E'it\'s :a', e'\\', ':a', E'x'':a'");
    check_unchanged("select E'a'\n  '\\' :a'");
    check_unchanged("select E'a' -- it's a comment\n -- and one more\n '\\' :a'");
    check_unchanged(r"select U&'\0061:a', u&'it''s :a'");
    check_unchanged(r#"select U&"\0061:a", "a:b", "say "":a""""#);
    check_unchanged("select B'01', b':a', X'1F', x':a', N':a'");
    check_unchanged("select $$ :a ' $$, $tag$ :a $$ $tag $tag$, $_é1$:a$_é1$");
    check_unchanged("select a$$b, c$x$, d$1 from t");
    check_unchanged("select 1 -- :a '");
    check_unchanged("select 1 -- :a\r, 2");
    check_unchanged("select /* :a ' /* :b */ \" */ 1");
    check_unchanged("select /**/ 1 /* /*/ */ */");
    check_unchanged("select 2 */* :a */ 3, 2 /-- :a\n 3");
    check("select E'\\\\':a", "select E'\\\\'$1", &["a"]);
    check("select E'a' '\\':a", "select E'a' '\\'$1", &["a"]);
    check("select fe'a\\':a", "select fe'a\\'$1", &["a"]);
    check("select a$b:c", "select a$b $1", &["c"]);
}

#[test]
fn a_number_never_melts_into_a_word_before_it() {
    check("select a:b", "select a $1", &["b"]);
    check("select 1:b", "select 1 $1", &["b"]);
    check("select é:b", "select é $1", &["b"]);
    check("select \"a\":b", "select \"a\"$1", &["b"]);
}

#[test]
fn an_encoded_plus_is_a_plus_outside_of_quotes() {
    check("select 1 %2B 2", "select 1 + 2", &[]);
    check(
        "select a%2Bb, 1%2B1, :a%2B:b",
        "select a+b, 1+1, $1+$2",
        &["a", "b"],
    );
    check("select 1 %2B%2B 2", "select 1 ++ 2", &[]);
    check("select 5%%2B1", "select 5%+1", &[]);
    check_unchanged("select '50%2B', \"a%2B\", $$%2B$$, E'%2B' /* %2B */ -- %2B");
    check_unchanged("select a like '%ad%', 5%2, 5%2b, '%20', 7%20");
}

#[test]
fn one_statement_may_end_with_one_semicolon() {
    check_unchanged("select 1;");
    check_unchanged("select 1 ; -- done ;\n /* ; */ ");
    check_unchanged("select ';', \";\", $$;$$");
    check_unchanged(
        "create rule r as on insert to t do also (insert into a values (1); insert into b values (2))",
    );
    check_unchanged(
        "create function f() returns int begin atomic select 1; \
         select case when true then 2 end; select x.end from x; end;",
    );
    check_unchanged("do $$ begin perform 1; perform 2; end $$");
    for (q, at) in [
        ("select 1; select 2", 9),
        ("select 'é'; select 2", 11),
        ("select 1;;", 9),
        ("; select 1", 1),
        (
            "create function f() returns int begin atomic select 1; end; select 2",
            59,
        ),
        ("create table atomic (a int); select 1", 28),
        ("select 1; begin atomic; end", 9),
    ] {
        assert_eq!(
            refused(q),
            InputError::SeveralStatements { position: at },
            "{q}"
        );
    }
}

#[test]
fn nothing_is_no_statement() {
    for q in [
        "",
        "  \n\t",
        "-- comment",
        "/* a /* b */ */",
        ";",
        " ; -- x",
    ] {
        assert_eq!(refused(q), InputError::EmptyStatement, "{q:?}");
    }
}

#[test]
fn what_has_no_end_is_named_with_its_position() {
    unreadable("select 'abc", 8);
    unreadable("select 'é', 'abc", 13);
    unreadable("select 'abc''", 8);
    unreadable(r"select E'abc\'", 8);
    unreadable("select E'abc\\", 8);
    unreadable("select E'a'\n'b", 8);
    unreadable("select \"abc", 8);
    unreadable("select U&'abc", 8);
    unreadable("select $$abc$", 8);
    unreadable("select $a$abc$$", 8);
    unreadable("select /* /* */", 8);
    unreadable("select \0", 8);
    unreadable("select 'a\0'", 10);
    unreadable("select 1, $1", 11);
    unreadable("select :grö", 11);
    unreadable("select :a$b", 10);
    let error = refused("select 1, $1").to_string();
    assert!(error.contains(":name"), "{error}");
}

#[test]
fn a_number_that_versions_read_differently_is_refused() {
    unreadable("select 1$a$ , f() as b$a$", 9);
    unreadable("select 1_$a$ , f() as b$a$", 10);
    unreadable("select 1_000$a$ , f() as b$a$", 13);
    unreadable(r"select 1_e'\' , f(), '", 10);
    unreadable(r"select 1_0.5e'\' , f(), '", 13);
    unreadable("select .5_x", 11);
    for q in [
        "select 1_000, 1_0.5_0e1_0+1",
        "select 0x1f, 1e5 a$b$",
        "select 1 a",
    ] {
        check_unchanged(q);
    }
}

#[test]
fn positions_are_those_of_the_callers_text() {
    let statement = read("select é, :first_name, 1 %2B x, :b, nowhere");
    assert_eq!(statement.text(), "select é, $1, 1 + x, $2, nowhere");
    let position = |text: &str, needle: &str| {
        u32::try_from(text.split(needle).next().unwrap().chars().count() + 1).unwrap()
    };
    for (rewritten, callers) in [
        ("é", "é"),
        ("$1", ":first"),
        ("+", "%2B"),
        ("x", "x"),
        ("$2", ":b"),
        ("nowhere", "nowhere"),
    ] {
        let from = position(statement.text(), rewritten);
        let to = position("select é, :first_name, 1 %2B x, :b, nowhere", callers);
        assert_eq!(statement.caller_position(from), to, "{rewritten}");
    }
    let end = u32::try_from(statement.text().chars().count() + 1).unwrap();
    assert_eq!(statement.caller_position(end), 44);
    assert_eq!(read("select a:b").caller_position(10), 9);
    assert_eq!(read("select 1").caller_position(3), 3);
}

#[test]
fn messages_call_placeholders_by_name() {
    let statement = read("select :a, :b_1, :c, :d, :e, :f, :g, :h, :i, :last");
    for (actual, reported) in [
        ("of parameter $1", "of parameter :a"),
        ("at or near \"$2\"", "at or near \":b_1\""),
        ("$10 and $1", ":last and :a"),
        (
            "$0, $11, $, $x, $99999999999999999999",
            "$0, $11, $, $x, $99999999999999999999",
        ),
        ("é$3é", "é:cé"),
        ("", ""),
    ] {
        assert_eq!(statement.caller_message(actual), reported);
    }
}
