//! `application/x-www-form-urlencoded` (WHATWG URL, section 5.1), as RFC 6749 appendix B uses it.

/// Decodes `+` and `%XX`; a `%` without two hex digits is kept. `None` if the result is not UTF-8.
pub(crate) fn decode(text: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'+' => decoded.push(b' '),
            b'%' => match tail
                .split_first_chunk::<2>()
                .and_then(|(digits, _)| pair(*digits))
            {
                Some(byte) => {
                    decoded.push(byte);
                    rest = &tail[2..];
                }
                None => decoded.push(b'%'),
            },
            byte => decoded.push(byte),
        }
    }
    String::from_utf8(decoded).ok()
}

/// Appends `text`, percent-encoding all but unreserved characters (RFC 3986, section 2.3).
pub(crate) fn encode_into(encoded: &mut String, text: &str) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(char::from(DIGITS[usize::from(byte >> 4)]));
            encoded.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn pair([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
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
