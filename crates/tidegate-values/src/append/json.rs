//! JSON strings (RFC 8259, section 7) and base64, appended to a buffer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Appends text as a JSON string. Bytes that are not UTF-8 become U+FFFD, because JSON text is
/// UTF-8. A database with the encoding `SQL_ASCII` may send such bytes.
#[inline]
pub fn string(text: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(b"\"");
    string_body(text, out);
    out.extend_from_slice(b"\"");
}

/// Appends text as the content of a JSON string, without the quotes.
#[inline]
pub(crate) fn string_body(text: &[u8], out: &mut BytesMut) {
    match scan(text) {
        Scan::Plain => out.extend_from_slice(text),
        Scan::Escapes => escape(text, out),
        Scan::Wide => match std::str::from_utf8(text) {
            Ok(_) => escape(text, out),
            Err(_) => escape(String::from_utf8_lossy(text).as_bytes(), out),
        },
    }
}

/// Appends text unchanged, except that bytes that are not UTF-8 become U+FFFD.
#[inline]
pub(crate) fn raw_text(text: &[u8], out: &mut BytesMut) {
    match std::str::from_utf8(text) {
        Ok(_) => out.extend_from_slice(text),
        Err(_) => out.extend_from_slice(String::from_utf8_lossy(text).as_bytes()),
    }
}

/// The characters that a text contains.
enum Scan {
    /// Contains only ASCII characters that need no escape.
    Plain,
    /// Contains only ASCII characters, some of which need an escape.
    Escapes,
    /// Contains bytes beyond ASCII, which may be invalid UTF-8, and possibly characters that need
    /// an escape.
    Wide,
}

/// Determines which characters a text contains. Reads eight bytes at a time. The last read may
/// overlap the read before it.
#[inline]
fn scan(text: &[u8]) -> Scan {
    let mut special = 0;
    let mut high = 0;
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        special |= specials(word);
        high |= word;
    }
    if !rest.is_empty() {
        let last = text.last_chunk().copied().unwrap_or_else(|| {
            let mut padded = [b' '; 8];
            padded[..rest.len()].copy_from_slice(rest);
            padded
        });
        let word = u64::from_le_bytes(last);
        special |= specials(word);
        high |= word;
    }
    if high & HIGHS != 0 {
        Scan::Wide
    } else if special != 0 {
        Scan::Escapes
    } else {
        Scan::Plain
    }
}

/// Returns a number other than zero if, and only if, a byte of `word` is below 0x20, a quote or a
/// backslash. The number does not show which byte of the word this is.
#[inline]
fn specials(word: u64) -> u64 {
    let below = |limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS;
    let equal = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference & HIGHS
    };
    below(0x20) | equal(b'"') | equal(b'\\')
}

/// For each byte, the character that follows the backslash in its escape: `u` if the byte has no
/// short escape, or 0 if it needs no escape.
const ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        escapes[control] = b'u';
        control += 1;
    }
    escapes[b'\n' as usize] = b'n';
    escapes[b'\r' as usize] = b'r';
    escapes[b'\t' as usize] = b't';
    escapes[0x08] = b'b';
    escapes[0x0c] = b'f';
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes
};

/// Appends UTF-8 text with the escapes that JSON requires, without quotes. `text` may begin and end
/// within a character. The text between two characters that need an escape is copied in one piece.
pub fn escape(text: &[u8], out: &mut BytesMut) {
    out.reserve(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest
        .iter()
        .position(|&byte| ESCAPES[usize::from(byte)] != 0)
    {
        let (run, tail) = rest.split_at(at);
        out.extend_from_slice(run);
        match ESCAPES[usize::from(tail[0])] {
            b'u' => {
                out.extend_from_slice(b"\\u00");
                hex(&tail[..1], out);
            }
            letter => out.extend_from_slice(&[b'\\', letter]),
        }
        rest = &tail[1..];
    }
    out.extend_from_slice(rest);
}

/// Appends bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        let pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        out.extend_from_slice(&pair);
    }
}

/// Appends bytes in base64 (RFC 4648, section 4: standard alphabet, padded).
pub(crate) fn base64(bytes: &[u8], out: &mut BytesMut) {
    let start = out.len();
    let length = bytes.len().div_ceil(3) * 4;
    out.resize(start + length, 0);
    let written = STANDARD.encode_slice(bytes, &mut out[start..]);
    out.truncate(start + written.unwrap_or(0));
}
