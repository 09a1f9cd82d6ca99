//! Derives GraphQL names from the names in PostgreSQL (docs/API.md, "Names and types").
//!
//! Every name here is a valid GraphQL name (GraphQL, "Names") that does not begin with `__`, which
//! is reserved for introspection.

mod case;
mod field;
mod relationship;
mod type_name;

use std::collections::HashMap;

pub(crate) use field::fields;
pub(crate) use relationship::{RelationshipEnd, name_relationships};
pub use type_name::{AGGREGATES, RESERVED, Renamed};
pub(crate) use type_name::{TypeNames, type_names};

/// For each name that was not free, the last number that was appended to it.
#[derive(Default)]
struct LastNumbers(HashMap<String, u32>);

impl LastNumbers {
    /// Calls `take` with the name, then with the name and 2, with the name and 3 and so on, until
    /// `take` returns true. Returns the name that `take` accepted. If numbers were appended to the
    /// same name before, continues after the last one, so that many equal names do not take
    /// quadratic time.
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
