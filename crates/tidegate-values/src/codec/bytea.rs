//! The text forms of `bytea` (PostgreSQL, "Binary Data Types").

/// Decodes pairs of hexadecimal digits; `None` for any other text.
pub fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| bytes.collect())?
}

/// Decodes either format of `bytea_output`: `\x` and hexadecimal digits, or the escape format.
/// `None` for any other text.
pub fn from_text(raw: &[u8]) -> Option<Vec<u8>> {
    if let Some(digits) = raw.strip_prefix(b"\\x") {
        return from_hex(digits);
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
        } else if let Some(tail) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = tail;
        } else {
            let (octal, tail) = rest.split_at_checked(3)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()?);
            rest = tail;
        }
    }
    Some(bytes)
}
