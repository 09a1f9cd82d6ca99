//! Parts of ranges and geometric values.

use bytes::BytesMut;
use tidegate_values::codec::json_string;
use tidegate_values::json::{self, JsonKind, Members};

use super::shown::{Inner, NO_NUMBER};
use crate::Segment;
use crate::operation::{Part, PartShows};

/// Appends the wanted parts of a value's JSON form; of each element when it is a list of values.
/// Tells whether they can be shown.
pub(super) fn write(
    value: &str,
    (wanted, is_list): (&[Part], bool),
    out: &mut BytesMut,
    flaws: &mut Vec<Inner>,
) -> bool {
    if is_list {
        list(value, wanted, out, flaws);
        return true;
    }
    object(value, wanted, out, flaws)
}

/// Appends the elements of a list; one that cannot be shown is null.
fn list(value: &str, wanted: &[Part], out: &mut BytesMut, flaws: &mut Vec<Inner>) {
    out.extend_from_slice(b"[");
    for (at, element) in json::elements(value).unwrap_or_default().iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let (start, known) = (out.len(), flaws.len());
        let element = element.get();
        if element == "null" || !object(element, wanted, out, flaws) {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
        prefix(&Segment::Index(at), known, flaws);
    }
    out.extend_from_slice(b"]");
}

fn object(value: &str, wanted: &[Part], out: &mut BytesMut, flaws: &mut Vec<Inner>) -> bool {
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
        let (start, known) = (out.len(), flaws.len());
        let shown = member(value, &members, part, out, flaws);
        prefix(&Segment::Key(part.key.clone()), known, flaws);
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
    part: &Part,
    out: &mut BytesMut,
    flaws: &mut Vec<Inner>,
) -> bool {
    match &part.shows {
        PartShows::Typename(name) => json_string(name.as_bytes(), out),
        PartShows::Itself(parts) => list(value, parts, out, flaws),
        PartShows::Member(name, parts) => {
            let found = members.iter().find(|(known, _)| known == name);
            match (found.map(|(_, raw)| raw.get()), &parts[..]) {
                // Only an empty range says that it is.
                (None, _) if *name == "empty" => out.extend_from_slice(b"false"),
                (None, _) => out.extend_from_slice(b"null"),
                (Some("\"NaN\"" | "\"Infinity\"" | "\"-Infinity\""), []) if !is_bound(name) => {
                    flaws.push((Vec::new(), NO_NUMBER));
                    return false;
                }
                (Some(raw), []) => out.extend_from_slice(raw.as_bytes()),
                (Some(raw), parts) => {
                    let is_list = JsonKind::of(raw) == JsonKind::Array;
                    return write(raw, (parts, is_list), out, flaws);
                }
            }
        }
    }
    true
}

/// Whether a member is the bound of a range: a text, or a number that is never a float.
fn is_bound(name: &str) -> bool {
    matches!(name, "lower" | "upper")
}

/// Puts a step in front of the paths of flaws found since.
fn prefix(step: &Segment, known: usize, flaws: &mut [Inner]) {
    for (path, _) in &mut flaws[known..] {
        path.insert(0, step.clone());
    }
}
