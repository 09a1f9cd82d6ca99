//! The columns of a result, as callers see them.

use std::collections::HashSet;

use bytes::BytesMut;
use postgres_types::{Kind, Type};

use crate::codec::json_string;
use crate::column::Column;

/// The names of a result's columns: a name that came before gets `_1`, `_2` …, whichever is the
/// first that no column has.
pub fn column_names(columns: &[Column]) -> Vec<String> {
    let taken: HashSet<&str> = columns.iter().map(|column| &*column.name).collect();
    let mut given = HashSet::new();
    let mut names = Vec::with_capacity(columns.len());
    for column in columns {
        let mut name = column.name.clone();
        let mut number = 0_u32;
        while !given.insert(name.clone()) {
            loop {
                number += 1;
                name = format!("{}_{number}", column.name);
                if !taken.contains(&*name) {
                    break;
                }
            }
        }
        names.push(name);
    }
    names
}

/// The name of a type as `schema` shows it, and whether it is an array: arrays by their elements,
/// domains by what they are made of.
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
            _ => return (inner.name(), array),
        }
    }
}

/// Appends the object `{"column":{"type":"int4","array":false},…}`.
pub(super) fn write(names: &[String], columns: &[Column], out: &mut BytesMut) {
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
