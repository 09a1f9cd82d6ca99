//! Fields of comma-separated values (RFC 4180, section 2).

use bytes::BytesMut;

/// Makes what stands in `out` from `start` on a field: puts it in quotes when it is empty (an
/// empty field is NULL) or holds a separator.
#[inline]
pub(super) fn close_field(start: usize, out: &mut BytesMut) {
    let field = &out[start..];
    if field.is_empty() {
        out.extend_from_slice(b"\"\"");
    } else if field
        .iter()
        .any(|byte| matches!(byte, b'"' | b',' | b'\n' | b'\r'))
    {
        quote(start, out);
    }
}

/// Puts a field in quotes and doubles those that it holds.
fn quote(start: usize, out: &mut BytesMut) {
    let field = out.split_off(start);
    out.extend_from_slice(b"\"");
    let mut rest = &field[..];
    while let Some(at) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=at]);
        out.extend_from_slice(b"\"");
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\"");
}
