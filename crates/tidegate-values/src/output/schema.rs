//! The columns of a result, as callers see them.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::BytesMut;
use postgres_types::{Kind, Type};

use crate::append::json_string;
use crate::column::Column;

/// If there are at most this many names, each is compared with the others, which is cheaper than a
/// set.
const MAX_LINEAR: usize = 16;

/// The names of a result's columns. A repeated name gets a suffix: the first of `_1`, `_2` and so
/// on that makes it unique.
pub fn column_names(columns: &[Column]) -> Vec<Cow<'_, str>> {
    if are_few_and_distinct(columns) {
        let names = columns.iter().map(|column| Cow::Borrowed(&*column.name));
        return names.collect();
    }
    let taken: HashSet<&str> = columns.iter().map(|column| &*column.name).collect();
    let mut given = HashSet::new();
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        let mut name = Cow::Borrowed(&*column.name);
        let mut number = 0_u32;
        while !given.insert(name.clone()) {
            loop {
                number += 1;
                name = Cow::Owned(format!("{}_{number}", column.name));
                if !taken.contains(&*name) {
                    break;
                }
            }
        }
        names.push(name);
    }
    names
}

fn are_few_and_distinct(columns: &[Column]) -> bool {
    columns.len() <= MAX_LINEAR
        && columns.iter().enumerate().all(|(at, column)| {
            let before = &columns[..at];
            before.iter().all(|other| other.name != column.name)
        })
}

/// The type name that the member `schema` of a result has for a column, and whether the type is an
/// array. An array has the name of its elements, and a domain has the name of its base type.
pub fn shown_type(r#type: &Type) -> (&str, bool) {
    let mut array = false;
    let mut inner = r#type;
    loop {
        match inner.kind() {
            Kind::Array(element) => {
                array = true;
                inner = element;
            }
            Kind::Domain(base) => inner = base,
            _ if *inner == Type::RECORD_ARRAY => return (Type::RECORD.name(), true),
            _ => return (inner.name(), array),
        }
    }
}

/// Appends an object such as `{"column":{"type":"int4","array":false},…}`.
pub(super) fn write(names: &[Cow<'_, str>], columns: &[Column], out: &mut BytesMut) {
    out.extend_from_slice(b"{");
    for (at, (name, column)) in names.iter().zip(columns).enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let (shown, array) = shown_type(&column.r#type);
        json_string(name.as_bytes(), out);
        out.extend_from_slice(b":{\"type\":");
        json_string(shown.as_bytes(), out);
        out.extend_from_slice(if array {
            b",\"array\":true}"
        } else {
            b",\"array\":false}"
        });
    }
    out.extend_from_slice(b"}");
}
