//! Fields of comma-separated values (RFC 4180, section 2).

use bytes::BytesMut;

/// Ends the field that begins at `start` in `out` and extends to the end of `out`. Quotes the field
/// if it contains a comma, a quote or a line break, or if it is empty, because an unquoted empty
/// field is NULL.
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

/// Quotes a field and doubles the quotes in it. Works in place, from the end of the field to its
/// start.
fn quote(start: usize, out: &mut BytesMut) {
    let length = out.len() - start;
    let quotes = memchr::memchr_iter(b'"', &out[start..]).count();
    out.resize(out.len() + quotes + 2, b'"');
    let field = &mut out[start..];
    let mut to = field.len() - 1;
    for from in (0..length).rev() {
        to -= 1;
        field[to] = field[from];
        if field[to] == b'"' {
            to -= 1;
            field[to] = b'"';
        }
    }
    field[0] = b'"';
}
