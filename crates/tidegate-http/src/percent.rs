//! Percent-encoding (RFC 3986, section 2.1) and forms (URL Standard, section 5.1).

use std::borrow::Cow;

/// Decodes `%XX`; `None` if a `%` is not followed by two hex digits, or the bytes are not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// Encodes all but unreserved characters (RFC 3986, section 2.3).
pub fn encode(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
            encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    encoded
}

/// Decodes a name or value of a form, in which `+` is a space.
pub fn decode_form(text: &str) -> Option<Cow<'_, str>> {
    if text.contains('+') {
        let blanks = text.replace('+', " ");
        return decode(&blanks).map(|decoded| Cow::Owned(decoded.into_owned()));
    }
    decode(text)
}

/// The names and values of a form or query, in order; `None` if one of them cannot be decoded.
pub fn form(text: &str) -> Option<Vec<(String, String)>> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((
                decode_form(name)?.into_owned(),
                decode_form(value)?.into_owned(),
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes_of_utf_8() {
        assert_eq!(decode("a%20%C3%A4").as_deref(), Some("a ä"));
        assert_eq!(decode("a+b").as_deref(), Some("a+b"));
        for bad in ["%", "%4", "%zz", "%+1", "%ff", "a%2"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["shop", "a b/ü&=+%", ""] {
            assert_eq!(decode(&encode(text)).as_deref(), Some(text));
        }
        assert_eq!(encode("a b/ü"), "a%20b%2F%C3%BC");
    }

    #[test]
    fn a_plus_in_a_form_is_a_blank() {
        let pairs = form("a=1+2&b=%2B&c&=d&&e=f=g").unwrap();
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [("a", "1 2"), ("b", "+"), ("c", ""), ("", "d"), ("e", "f=g")]
        );
        assert_eq!(form("a=%"), None);
    }
}
