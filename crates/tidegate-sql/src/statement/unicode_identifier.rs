//! Decodes quoted identifiers (PostgreSQL, "Identifiers and Key Words").

use std::borrow::Cow;

/// The default escape character of `U&"…"`, which `UESCAPE` can replace.
const ESCAPE: char = '\\';

/// The name in a quoted identifier, with or without `U&`. Doubled quotes stay doubled, because the
/// result is compared only with keywords.
pub(super) fn name(quoted: &str) -> Cow<'_, str> {
    match quoted.strip_prefix('"') {
        Some(_) => Cow::Borrowed(quoted.trim_matches('"')),
        None => Cow::Owned(unescape(quoted, ESCAPE)),
    }
}

/// The name in `U&"…"` with the escape character of `uescape`.
pub(super) fn name_with(quoted: &str, uescape: &str) -> String {
    let escape = uescape.trim_matches('\'').chars().next();
    unescape(quoted, escape.unwrap_or(ESCAPE))
}

/// Decodes the Unicode escapes. Invalid escapes are left unchanged, and PostgreSQL rejects them.
fn unescape(quoted: &str, escape: char) -> String {
    let inner = quoted.split_once('"').map_or("", |(_, inner)| inner);
    let mut rest = inner.strip_suffix('"').unwrap_or(inner);
    let mut name = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once(escape) {
        name.push_str(before);
        let (digits, length) = match after.strip_prefix('+') {
            Some(_) => (after.get(1..7), 7),
            None => (after.get(..4), 4),
        };
        let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        if let Some(character) = number.and_then(char::from_u32) {
            name.push(character);
            rest = &after[length..];
        } else {
            name.push(escape);
            rest = after.strip_prefix(escape).unwrap_or(after);
        }
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_name_is_what_postgresql_reads() {
        assert_eq!(name("\"role\""), "role");
        for escaped in ["U&\"r\\006fle\"", "u&\"\\+000072ole\"", "U&\"role\""] {
            assert_eq!(name(escaped), "role", "{escaped}");
        }
        assert_eq!(name("U&\"a\\\\b\\\""), "a\\b\\");
        assert_eq!(name_with("U&\"!0072ole\"", "'!'"), "role");
        assert_eq!(name_with("U&\"r\\006fle\"", "'!'"), "r\\006fle");
    }
}
