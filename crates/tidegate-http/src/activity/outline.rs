//! Makes the outline of a statement: its text with the values removed.

use serde_json::Value;

/// The approximate length in bytes at which an outline is cut.
const LONGEST: usize = 1_000;

/// The statement, document or method name in a request's body, without values. `None` if the body
/// has none of them. If the body is an array, only its first request is used.
pub(super) fn of_body(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let (first, more) = match &body {
        Value::Array(items) => (items.first()?, items.len() - 1),
        one => (one, 0),
    };
    let text = |name: &str| first.get(name).and_then(Value::as_str);
    let mut outlined = match (text("q"), text("query"), text("method")) {
        (Some(sql), _, _) => outline(sql, true),
        (_, Some(document), _) => outline(document, false),
        (_, _, Some(method)) => method.chars().take(LONGEST).collect(),
        _ => return None,
    };
    if more > 0 {
        outlined = format!("{outlined} (and {more} more)");
    }
    Some(outlined)
}

/// Replaces strings, quoted names and numbers by `?` and removes comments. Quoted names are
/// replaced because a failed statement may have a value in double quotes. The text is cut at a
/// string or comment without an end. It is also cut at an SQL string with a backslash, because
/// PostgreSQL's settings decide where such a string ends.
fn outline(text: &str, sql: bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if out.len() > LONGEST {
            out.push('…');
            break;
        }
        let Some((piece, after)) = piece(rest, first, sql, &out) else {
            out.push('…');
            break;
        };
        let spaced = piece == " " && (out.is_empty() || out.ends_with(' '));
        if !spaced {
            out.push_str(piece);
        }
        rest = after;
    }
    out.trim_end().to_owned()
}

/// The next piece of the outline and the text after it; `None` if the text must be cut here.
/// `before` is the outline so far.
fn piece<'t>(rest: &'t str, first: char, sql: bool, before: &str) -> Option<(&'t str, &'t str)> {
    let comment = if sql { "--" } else { "#" };
    let in_name = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
    if rest.starts_with(comment) {
        let end = rest.find('\n').unwrap_or(rest.len());
        return Some((" ", &rest[end..]));
    }
    if sql && rest.starts_with("/*") {
        return block_comment(rest).map(|after| (" ", after));
    }
    if sql && first == '\'' {
        // A quoted string has backslash escapes only after the prefix `E`.
        let mut chars = before.chars().rev();
        let prefixed = matches!(chars.next(), Some('e' | 'E'));
        let escaped = prefixed
            && !chars
                .next()
                .is_some_and(|c| c.is_alphanumeric() || c == '_');
        let after = string(&rest[1..], "'", escaped)?;
        let content = &rest[..rest.len() - after.len()];
        return (!content.contains('\\')).then_some(("?", after));
    }
    if sql
        && first == '$'
        && !in_name
        && let Some(tag) = dollar_tag(rest)
    {
        let after = rest[tag.len()..].split_once(tag);
        return after.map(|(_, after)| ("?", after));
    }
    if first == '"' {
        if sql {
            return string(&rest[1..], "\"", false).map(|behind| ("?", behind));
        }
        let after = match rest.strip_prefix("\"\"\"") {
            Some(block) => block.split_once("\"\"\"").map(|(_, after)| after),
            None => string(&rest[1..], "\"", true),
        };
        return after.map(|after| ("?", after));
    }
    if first.is_ascii_digit() && !in_name {
        let number = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        return Some(("?", rest.trim_start_matches(number)));
    }
    let length = first.len_utf8();
    if first.is_whitespace() {
        return Some((" ", &rest[length..]));
    }
    Some((&rest[..length], &rest[length..]))
}

/// The text after the end of a string whose opening quote has been read; `None` if the string has
/// no end. If `escaped` is true, a backslash escapes the next character. A string that contains a
/// doubled quote, such as `'it''s'`, is read as two strings, and both are replaced by `?`.
fn string<'t>(text: &'t str, quote: &str, escaped: bool) -> Option<&'t str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if escaped && c == '\\' {
            chars.next();
        } else if text[at..].starts_with(quote) {
            return Some(&text[at + quote.len()..]);
        }
    }
    None
}

/// The tag that starts a dollar-quoted string, such as `$$` or `$x$`.
fn dollar_tag(rest: &str) -> Option<&str> {
    let end = rest[1..].find('$')? + 2;
    let name = &rest[1..end - 1];
    let valid = !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    valid.then(|| &rest[..end])
}

fn block_comment(rest: &str) -> Option<&str> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let found = rest[at..].find(['/', '*'])?;
        at += found;
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return Some(&rest[at..]);
            }
        } else {
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out_of_sql() {
        for (sql, outlined) in [
            ("select 'it''s', 1.5e3, -2", "select ??, ?, -?"),
            (r"select E'a\'b', U&'x'", "select E…"),
            ("select E'a', U&'x'", "select E?, U&?"),
            (r"select a like'a\' and b = 'c'", "select a like…"),
            ("select $$a'b$$, $x$ $$ $x$, $1", "select ?, ?, $1"),
            ("select \"a 1\", t2.c3 from t2", "select ?, t2.c3 from t2"),
            (
                "select 1 -- secret\n, 2 /* a /* b */ c */ + 3",
                "select ? , ? + ?",
            ),
            ("select  :name\n\t, 0xFF", "select :name , ?"),
            ("select 'never ends", "select …"),
            ("select $a$never ends", "select …"),
            ("select 1 /* never ends", "select ? …"),
            ("select 'ä', \"ö\"", "select ?, ?"),
        ] {
            assert_eq!(outline(sql, true), outlined, "{sql}");
        }
    }

    #[test]
    fn values_are_left_out_of_documents() {
        for (document, outlined) in [
            (
                "{ getAlbums(where: {title: \"x \\\" y\"}, limit: 5) { id } } # secret",
                "{ getAlbums(where: {title: ?}, limit: ?) { id } }",
            ),
            ("{ a(b: \"\"\"secret \" \"\"\") }", "{ a(b: ?) }"),
            ("{ a(b: $c) }", "{ a(b: $c) }"),
            ("{ a(b: \"never ends) }", "{ a(b: …"),
        ] {
            assert_eq!(outline(document, false), outlined, "{document}");
        }
    }

    #[test]
    fn a_body_is_outlined_by_what_it_asks() {
        for (body, outlined) in [
            (r#"{"q":"select 1"}"#, Some("select ?")),
            (
                r#"[{"q":"select 1"},{"q":"select 2"}]"#,
                Some("select ? (and 1 more)"),
            ),
            (
                r#"{"query":"{ a }","variables":{"x":"secret"}}"#,
                Some("{ a }"),
            ),
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{"a":"secret"}}"#,
                Some("m"),
            ),
            ("{}", None),
            ("[]", None),
            ("not json", None),
        ] {
            assert_eq!(of_body(body.as_bytes()).as_deref(), outlined, "{body}");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let outlined = outline(&"select a, ".repeat(1_000), true);
        assert!(outlined.len() < LONGEST + 20 && outlined.ends_with('…'));
    }
}
