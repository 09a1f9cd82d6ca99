//! Derives the field names of columns.

use std::borrow::Cow;
use std::collections::HashSet;

use super::LastNumbers;

/// The field name of each column, in order. It is the column's name if GraphQL allows it. Otherwise
/// invalid characters become `_`, and a number is added if the name is taken.
pub(crate) fn fields(columns: &[Box<str>]) -> Vec<Box<str>> {
    let cleaned: Vec<_> = columns.iter().map(|name| clean(name)).collect();
    let verbatim = |name: &&Cow<'_, str>| matches!(name, Cow::Borrowed(_));
    let mut taken: HashSet<String> = cleaned
        .iter()
        .filter(verbatim)
        .map(ToString::to_string)
        .collect();
    let mut numbers = LastNumbers::default();
    let field = |name: Cow<'_, str>| match name {
        Cow::Borrowed(name) => name.into(),
        Cow::Owned(name) => numbers
            .first_free(&name, |name| taken.insert(name.to_owned()))
            .into(),
    };
    cleaned.into_iter().map(field).collect()
}

/// Makes a valid GraphQL name. Each invalid character becomes `_`, and several `_` at the start
/// become one. The name is borrowed if it is valid already.
fn clean(name: &str) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let allowed = |(place, character): (usize, char)| match character {
        '0'..='9' if place == 0 => '_',
        'A'..='Z' | 'a'..='z' | '0'..='9' => character,
        _ => '_',
    };
    let replaced: String = name.chars().enumerate().map(allowed).collect();
    let rest = replaced.trim_start_matches('_');
    if rest.len() == replaced.len() {
        Cow::Owned(replaced)
    } else {
        Cow::Owned(format!("_{rest}"))
    }
}

fn is_name(name: &str) -> bool {
    let character = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(character)
        && !name.starts_with("__")
        && name.starts_with(|first: char| !first.is_ascii_digit())
}
