//! Percent-encoding (RFC 3986, section 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All ASCII characters except the unreserved ones (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Percent-encodes all characters of `text` except the unreserved ones (RFC 3986, section 2.3).
pub fn percent_encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::percent_encode;

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(percent_encode("a b/ü&=+%"), "a%20b%2F%C3%BC%26%3D%2B%25");
        assert_eq!(percent_encode("plain-name_1.~"), "plain-name_1.~");
    }
}
