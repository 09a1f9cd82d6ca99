//! The names by which a request calls what PostgreSQL calls otherwise (wire.md, "GraphQL").
//!
//! Every name here is a GraphQL name (GraphQL, "Names") that does not begin with `__`, because
//! those are reserved for introspection.

mod case;
mod field;
mod relationship;
mod type_name;

use std::collections::HashMap;

pub(crate) use field::fields;
pub(crate) use relationship::{End, name_relationships};
pub use type_name::{AGGREGATES, RESERVED, Renamed};
pub(crate) use type_name::{TypeNames, type_names};

/// Numbers for names that are taken.
#[derive(Default)]
struct Numbers(HashMap<String, u32>);

impl Numbers {
    /// Calls `take` with the name, and with 2, 3 … behind it, until it is taken. Where a name has
    /// been counted up before it goes on from there, so that many equal names stay cheap.
    fn first_free(&mut self, name: &str, mut take: impl FnMut(&str) -> bool) -> String {
        if take(name) {
            return name.to_owned();
        }
        let last = self.0.entry(name.to_owned()).or_insert(1);
        loop {
            *last += 1;
            let numbered = format!("{name}{last}");
            if take(&numbered) {
                return numbered;
            }
        }
    }
}
