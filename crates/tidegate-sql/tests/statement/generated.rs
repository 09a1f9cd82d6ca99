//! Tests of parsing generated texts.

use proptest::prelude::*;
use tidegate_sql::Statement;
use tidegate_sql::statement::Kind;

use super::read;

/// Pieces from which texts are generated.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "'", "''", "\"", "$$", "$a$", "$1", "E'", "U&'", "U&\"", "B'", "\\", "/*", "*/", "--",
        "\n", ":", "::", ":=", ":a", ":b", "[", "]", "(", ")", ";", "%2B", "%", "é", "a", "1", ".",
        " ", "select", "begin", "atomic", "end", "case", "create", "cast(", " as ", "\0", "+", "?",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// A piece of a statement and its rewritten form.
fn segment() -> impl Strategy<Value = (&'static str, &'static str)> {
    let same = |text| (text, text);
    let segments = [":a", ":b", ":long_name", ":_1"].map(|name| (name, ""));
    let inert = [
        "'it''s :a'",
        "':a\\'",
        "E'\\':a'",
        "E'a''\\\\'",
        "e'a'\n'\\':a'",
        "U&'\\:a'",
        "B'1'",
        "x':a'",
        "$$:a$$",
        "$q$ :a $$ $q$",
        "\"x:a\"",
        "\"x\"\"':a\"",
        "/* :a ' */",
        "/* /* :a */ \" */",
        "-- :a '\n",
        "--\r",
        "x::int",
        "f(y := 1)",
        "a$b",
        "(",
        ")",
        "x[1:n]",
        "x[a :b]",
        "%2",
        "%2b",
        "'%2B'",
        "1.5e-3",
        ".5",
        "@>",
        "<=",
        "é",
        "\t",
        "?|",
        "$",
        "case",
        "end",
    ];
    let segments = segments.into_iter().chain(inert.map(same));
    prop::sample::select(
        segments
            .chain([("%2B", "+"), ("a%2Bb", "a+b"), ("%%2B", "%+")])
            .collect::<Vec<_>>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_makes_the_reader_panic(q in pieces()) {
        let _ = Statement::parse(&q);
    }

    #[test]
    fn no_unicode_makes_the_reader_panic(q in "\\PC*") {
        let _ = Statement::parse(&q);
    }

    #[test]
    fn segments_are_read_each_by_its_own_rule(segments in prop::collection::vec(segment(), 1..30)) {
        let mut names: Vec<&str> = Vec::new();
        let (mut q, mut expected) = ("select".to_owned(), "select".to_owned());
        for (text, rewritten) in segments {
            // A comma separates the pieces, because a string may continue after white space.
            q.push_str(" , ");
            q.push_str(text);
            expected.push_str(" , ");
            if let Some(name) = text.strip_prefix(':') {
                let known = names.iter().position(|known| *known == name);
                let number = known.unwrap_or(names.len());
                if known.is_none() {
                    names.push(name);
                }
                expected.push('$');
                expected.push_str(&(number + 1).to_string());
            } else {
                expected.push_str(rewritten);
            }
        }
        let statement = read(&q);
        prop_assert_eq!(statement.text(), expected);
        prop_assert_eq!(statement.placeholders(), names);
        prop_assert_eq!(statement.kind(), Kind::Read);
    }

    #[test]
    fn strings_are_never_changed(inner in "[^'\0]*", name in "[a-z]{1,5}") {
        let quoted = format!("'{inner}'");
        let statement = read(&format!("select {quoted}, :{name}, \"{}\"", "x:y"));
        prop_assert_eq!(statement.text(), format!("select {quoted}, $1, \"x:y\""));
    }

    #[test]
    fn every_position_keeps_its_text(words in prop::collection::vec(prop::sample::select(vec![":a", ":bcd", "%2B", "x", "'é'", ","]), 1..20)) {
        let q = format!("select {} END_OF_TEXT", words.join(" "));
        let statement = read(&q);
        let at = |text: &str| u32::try_from(text.chars().count() - "END_OF_TEXT".len() + 1).unwrap();
        prop_assert_eq!(statement.caller_position(at(statement.text())), at(&q));
    }
}
