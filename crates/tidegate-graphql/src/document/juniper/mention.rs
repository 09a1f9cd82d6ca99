//! Collects the names that a document uses.

use std::collections::HashSet;

use juniper::{Definition, Selection};

use super::Scalar;

/// The names of fields and types that occur in a document.
#[derive(Default)]
pub(super) struct Mentioned<'d> {
    pub(super) fields: HashSet<&'d str>,
    /// The names of types in type conditions.
    pub(super) types: HashSet<&'d str>,
}

impl<'d> Mentioned<'d> {
    /// The names in a parsed document.
    pub(super) fn of(parsed: &[Definition<'d, Scalar>]) -> Self {
        let mut mentioned = Self::default();
        for definition in parsed {
            match definition {
                Definition::Operation(operation) => {
                    mentioned.selection(&operation.item.selection_set);
                }
                Definition::Fragment(fragment) => {
                    mentioned.types.insert(fragment.item.type_condition.item);
                    mentioned.selection(&fragment.item.selection_set);
                }
            }
        }
        mentioned
    }

    fn selection(&mut self, selection: &[Selection<'d, Scalar>]) {
        for part in selection {
            match part {
                Selection::Field(field) => {
                    self.fields.insert(field.item.name.item);
                    if let Some(parts) = &field.item.selection_set {
                        self.selection(parts);
                    }
                }
                Selection::InlineFragment(inline) => {
                    self.types
                        .extend(inline.item.type_condition.as_ref().map(|name| name.item));
                    self.selection(&inline.item.selection_set);
                }
                Selection::FragmentSpread(_) => {}
            }
        }
    }
}
