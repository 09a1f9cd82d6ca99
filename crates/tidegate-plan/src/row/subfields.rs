//! Subfields of ranges and geometric values.

use bytes::BytesMut;
use tidegate_values::codec::json_string;
use tidegate_values::json::{self, JsonKind, Members};

use super::projection::{Inner, NO_NUMBER};
use crate::PathSegment;
use crate::operation::{Subfield, SubfieldOutput};

/// Appends the selected subfields of `value`, which is JSON. If `is_list` is true, `value` is a
/// list, and the subfields of each element are appended.
///
/// GraphQL may be unable to represent the value of a subfield that is declared as non-null. If
/// `value` is a list, the element with this subfield then becomes null. Otherwise the function
/// returns `false`, and the caller must discard the appended text.
pub(super) fn write(
    value: &str,
    wanted: &[Subfield],
    is_list: bool,
    out: &mut BytesMut,
    field_errors: &mut Vec<Inner>,
) -> bool {
    if is_list {
        list(value, wanted, out, field_errors);
        return true;
    }
    object(value, wanted, out, field_errors)
}

/// Appends the elements of a list. An element that GraphQL cannot represent becomes null.
fn list(value: &str, wanted: &[Subfield], out: &mut BytesMut, field_errors: &mut Vec<Inner>) {
    out.extend_from_slice(b"[");
    for (at, element) in json::elements(value).unwrap_or_default().iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let (start, known) = (out.len(), field_errors.len());
        let element = element.get();
        if element == "null" || !object(element, wanted, out, field_errors) {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
        prefix(&PathSegment::Index(at), known, field_errors);
    }
    out.extend_from_slice(b"]");
}

fn object(
    value: &str,
    wanted: &[Subfield],
    out: &mut BytesMut,
    field_errors: &mut Vec<Inner>,
) -> bool {
    let members = if JsonKind::of(value) == JsonKind::Object {
        json::members(value).unwrap_or_default()
    } else {
        Members::new()
    };
    out.extend_from_slice(b"{");
    for (at, part) in wanted.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        json_string(part.key.as_bytes(), out);
        out.extend_from_slice(b":");
        let (start, known) = (out.len(), field_errors.len());
        let shown = member(value, &members, part, out, field_errors);
        prefix(&PathSegment::Key(part.key.clone()), known, field_errors);
        if !shown {
            if part.not_null {
                return false;
            }
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }
    out.extend_from_slice(b"}");
    true
}

fn member(
    value: &str,
    members: &Members<'_>,
    part: &Subfield,
    out: &mut BytesMut,
    field_errors: &mut Vec<Inner>,
) -> bool {
    match &part.output {
        SubfieldOutput::Typename(name) => json_string(name.as_bytes(), out),
        SubfieldOutput::Itself(parts) => list(value, parts, out, field_errors),
        SubfieldOutput::Member(name, parts) => {
            let found = members.iter().find(|(known, _)| known == name);
            match (found.map(|(_, raw)| raw.get()), &parts[..]) {
                // The JSON form of a range has the member `empty` only if the range is empty.
                (None, _) if *name == "empty" => out.extend_from_slice(b"false"),
                (None, _) => out.extend_from_slice(b"null"),
                (Some("\"NaN\"" | "\"Infinity\"" | "\"-Infinity\""), []) if !is_bound(name) => {
                    field_errors.push((Vec::new(), NO_NUMBER));
                    return false;
                }
                (Some(raw), []) => out.extend_from_slice(raw.as_bytes()),
                (Some(raw), parts) => {
                    let is_list = JsonKind::of(raw) == JsonKind::Array;
                    return write(raw, parts, is_list, out, field_errors);
                }
            }
        }
    }
    true
}

/// Whether a member is a bound of a range. A bound is never a GraphQL `Float`, so `"NaN"` and
/// `"Infinity"` are valid as bounds.
fn is_bound(name: &str) -> bool {
    matches!(name, "lower" | "upper")
}

/// Prepends a segment to the path of each error, except for the first `known` errors.
fn prefix(step: &PathSegment, known: usize, field_errors: &mut [Inner]) {
    for (path, _) in &mut field_errors[known..] {
        path.insert(0, step.clone());
    }
}
