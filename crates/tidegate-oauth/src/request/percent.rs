//! `application/x-www-form-urlencoded` (WHATWG URL, section 5.1), as RFC 6749 appendix B uses it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// All ASCII characters except the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Decodes `+` and `%XX`; a `%` without two hex digits is kept. `None` if the result is not UTF-8.
pub(crate) fn decode(text: &[u8]) -> Option<String> {
    let spaces: Vec<u8> = text
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let decoded = percent_decode(&spaces).decode_utf8();
    decoded.ok().map(Cow::into_owned)
}

/// Appends `text`, percent-encoding all but unreserved characters (RFC 3986, section 2.3).
pub(crate) fn encode_into(encoded: &mut String, text: &str) {
    encoded.extend(utf8_percent_encode(text, RESERVED));
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn hex_pairs_and_plus_are_decoded_and_the_rest_is_kept() {
        let cases = [
            ("a+b", Some("a b")),
            ("se%3Ac%2Bret", Some("se:c+ret")),
            ("100%", Some("100%")),
            ("%zz%4", Some("%zz%4")),
            ("%C3%A6", Some("æ")),
            ("%ff", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decode(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }
}
