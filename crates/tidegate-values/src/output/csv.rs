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

/// Puts a field in quotes and doubles those that it holds, in place from its end.
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
