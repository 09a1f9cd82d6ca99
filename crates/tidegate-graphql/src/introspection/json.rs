//! JSON texts of names.

use super::object::Member;

/// Appends a text, or null.
pub(super) fn text<'o>(text: Option<&str>, out: &mut String) -> Member<'o> {
    // Names need no escape, and most texts are names.
    let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    match text {
        None => out.push_str("null"),
        Some(text) if text.bytes().all(plain) => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
    }
    Member::Written
}

/// Appends a list of texts.
pub(super) fn texts(texts: &[&str], out: &mut String) {
    out.push_str(&serde_json::Value::from(texts).to_string());
}

/// Appends `true` or `false`.
pub(super) fn boolean<'o>(value: bool, out: &mut String) -> Member<'o> {
    out.push_str(if value { "true" } else { "false" });
    Member::Written
}
