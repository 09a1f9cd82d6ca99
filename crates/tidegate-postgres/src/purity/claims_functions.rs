//! Replaces calls of `tidegate.user_id()`, `tidegate.claims()` and `tidegate.claim(text)` in
//! definitions by calls of built-in functions.
//!
//! These functions have no side effects, so a policy or a default that calls them makes no
//! statement impure.

/// The calls as PostgreSQL prints them with an empty `search_path`. Each is paired with a call of a
/// built-in function that has as many arguments and no side effects either.
const CALLS: [(&str, &str); 3] = [
    ("tidegate.user_id(", "pg_catalog.now("),
    ("tidegate.claims(", "pg_catalog.now("),
    ("tidegate.claim(", "pg_catalog.lower("),
];

/// The text of a definition with the calls replaced by calls of built-in functions.
pub(super) fn without_calls(text: &str) -> String {
    let replace = |text: String, (call, other): &(&str, &str)| {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, behind)) = rest.split_once(call) {
            // After a character that can be part of a name, `tidegate` is only the end of another
            // schema's name.
            let is_name = |last: char| last.is_alphanumeric() || "_$.\"".contains(last);
            replaced.push_str(before);
            replaced.push_str(if replaced.ends_with(is_name) {
                call
            } else {
                other
            });
            rest = behind;
        }
        replaced.push_str(rest);
        replaced
    };
    CALLS.iter().fold(text.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_functions_in_other_schemas_stay() {
        let cases = [
            (
                "(owner = ( SELECT tidegate.user_id() AS user_id))",
                "(owner = ( SELECT pg_catalog.now() AS user_id))",
            ),
            (
                "((a = tidegate.claim('x'::text)) AND (tidegate.claims() ? 'b'::text))",
                "((a = pg_catalog.lower('x'::text)) AND (pg_catalog.now() ? 'b'::text))",
            ),
            ("other_tidegate.user_id()", "other_tidegate.user_id()"),
            ("ätidegate.user_id()", "ätidegate.user_id()"),
            ("\"x\".tidegate.claims()", "\"x\".tidegate.claims()"),
            ("tidegate.user_ids()", "tidegate.user_ids()"),
            ("tidegate.other()", "tidegate.other()"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_calls(text), expected);
        }
    }
}
