//! Percent-encoding (RFC 3986, section 2.1) and forms (URL Standard, section 5.1).

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

pub use tidegate_identity::percent_encode as encode;

/// Decodes `%XX`; `None` if a `%` is not followed by two hex digits, or the bytes are not UTF-8.
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// Decodes a name or value of a form, in which `+` stands for a space; `None` as for [`decode`].
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
