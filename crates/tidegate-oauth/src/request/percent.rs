//! `application/x-www-form-urlencoded` (WHATWG URL, section 5.1), as RFC 6749 appendix B uses it.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Decodes `+` and `%XX`. A `%` without two hex digits is kept, as the URL Standard prescribes; the
/// queries of the API are decoded more strictly (`tidegate-http`). `None` if the result is not
/// UTF-8.
pub(crate) fn decode(text: &[u8]) -> Option<String> {
    let spaces: Vec<u8> = text
        .iter()
        .map(|&byte| if byte == b'+' { b' ' } else { byte })
        .collect();
    let decoded = percent_decode(&spaces).decode_utf8();
    decoded.ok().map(Cow::into_owned)
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
