//! Writes JSON strings (RFC 8259, section 7) piece by piece.

use bytes::BytesMut;

/// Appends a text as a JSON string.
pub(crate) fn write(text: &str, out: &mut BytesMut) {
    out.extend_from_slice(b"\"");
    escape(text.as_bytes(), out);
    out.extend_from_slice(b"\"");
}

/// Appends text as a part of a JSON string's content. `text` may begin and end anywhere, even
/// within a character.
pub(crate) fn escape(text: &[u8], out: &mut BytesMut) {
    out.reserve(text.len());
    let mut copied = 0;
    for (index, byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x00..=0x1f => &control(*byte),
            _ => continue,
        };
        out.extend_from_slice(&text[copied..index]);
        out.extend_from_slice(escaped);
        copied = index + 1;
    }
    out.extend_from_slice(&text[copied..]);
}

/// The escape of a control character, such as `\u001f`.
fn control(byte: u8) -> [u8; 6] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
    [b'\\', b'u', b'0', b'0', DIGITS[high], DIGITS[low]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_reader_reads_back_every_character() {
        let text: String = (0..0x250).filter_map(char::from_u32).collect();
        let mut out = BytesMut::new();
        write(&text, &mut out);
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
