//! Parses the text form of a row (PostgreSQL, "Composite Type Input and Output Syntax").

use std::borrow::Cow;

/// A value of a row; `None` for NULL.
pub(super) type Value<'a> = Option<Cow<'a, [u8]>>;

/// The values of a row with this number of columns. `None` if the text is not a row of that many
/// columns.
pub(super) fn values(image: &[u8], columns: usize) -> Option<Vec<Value<'_>>> {
    let body = image.strip_prefix(b"(")?.strip_suffix(b")")?;
    // A row without columns has the same text as a row with one NULL, so only `columns`
    // distinguishes them.
    if columns == 0 {
        return body.is_empty().then(Vec::new);
    }
    let mut values = Vec::with_capacity(columns);
    let mut rest = body;
    loop {
        let (value, after) = value(rest)?;
        values.push(value);
        match after.split_first() {
            None => break,
            Some((b',', next)) => rest = next,
            Some(_) => return None,
        }
    }
    (values.len() == columns).then_some(values)
}

/// Splits off the first value. Returns the value and the remaining text; `None` if the text is
/// malformed.
fn value(text: &[u8]) -> Option<(Value<'_>, &[u8])> {
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let (value, rest) = unquote(quoted)?;
        return Some((Some(value), rest));
    }
    let end = text.iter().position(|byte| *byte == b',');
    let (plain, rest) = text.split_at(end.unwrap_or(text.len()));
    if plain
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\\' | b'(' | b')'))
    {
        return None;
    }
    Some(((!plain.is_empty()).then(|| plain.into()), rest))
}

/// Splits `text`, which begins after an opening quote, at the closing quote. Returns the unescaped
/// content before the quote and the text after the quote; `None` if the text is malformed. In the
/// text form, quotes and backslashes in the content are doubled.
fn unquote(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut value = Cow::Borrowed(&[][..]);
    let mut rest = text;
    loop {
        let at = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        let (plain, after) = rest.split_at(at);
        if value.is_empty() {
            value = Cow::Borrowed(plain);
        } else {
            value.to_mut().extend_from_slice(plain);
        }
        let (mark, after) = after.split_first()?;
        match after.split_first() {
            Some((next, after)) if next == mark => {
                value.to_mut().push(*mark);
                rest = after;
            }
            _ if *mark == b'"' => return Some((value, after)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(image: &str, columns: usize) -> Option<Vec<Option<String>>> {
        let text = |value: Cow<'_, [u8]>| String::from_utf8(value.into_owned()).unwrap();
        let values = values(image.as_bytes(), columns)?;
        Some(values.into_iter().map(|value| value.map(text)).collect())
    }

    #[test]
    fn every_value_is_read() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("()", 0), Some(vec![]));
        assert_eq!(read("()", 1), Some(vec![None]));
        assert_eq!(read("(\"\")", 1), Some(vec![some("")]));
        assert_eq!(
            read(r#"(1,,"a ""b"" \\ ,()","{a,NULL,""b c""}","\\x00",é)"#, 6),
            Some(vec![
                some("1"),
                None,
                some(r#"a "b" \ ,()"#),
                some(r#"{a,NULL,"b c"}"#),
                some(r"\x00"),
                some("é"),
            ])
        );
        assert_eq!(read("(,)", 2), Some(vec![None, None]));
        assert_eq!(
            read(r#"("""","\\")"#, 2),
            Some(vec![some("\""), some("\\")])
        );
    }

    #[test]
    fn what_is_no_row_is_refused() {
        for wrong in [
            "",
            "(",
            ")",
            "1",
            "(1",
            "1)",
            "(1,2)",
            "(\"1)",
            "(\"1\"2)",
            "(\\1)",
            "(\"\\1\")",
            "(1\")",
            "((1))",
            "(\"\"\")",
        ] {
            assert_eq!(read(wrong, 1), None, "{wrong}");
        }
        assert_eq!(read("(1)", 0), None);
        assert_eq!(read("(1)", 2), None);
    }
}
