//! `application/x-www-form-urlencoded` (WHATWG URL, section 5.1), as RFC 6749 appendix B uses it.

/// Decodes `+` and `%XX`; a `%` that begins no pair of digits stays. None when no UTF-8 comes out.
pub(super) fn decode(text: &[u8]) -> Option<String> {
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
    fn pairs_and_pluses_are_decoded_and_the_rest_stays() {
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
