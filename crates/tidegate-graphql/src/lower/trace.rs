//! Which variables do nothing but become parameters of statements.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_catalog::model::RelationId;
use tidegate_filter::{Filter, Leaf, Operator};
use tidegate_plan::operation::Origins;
use tidegate_values::json::JsonKind;

use super::Lowerer;
use crate::document::{Document, Field, Operation, Selection, Value};

/// Notes at which places of a document variables become parameters.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Where they do, by the address of the place in the document.
    bound: Mutex<BTreeSet<usize>>,
    /// The variables that do anything else.
    others: Mutex<BTreeSet<Box<str>>>,
}

impl Trace {
    /// Whether a variable does nothing but become parameters, once [`Trace::finish`] has looked.
    pub(crate) fn is_bound(&self, variable: &str) -> bool {
        !lock(&self.others).contains(variable)
    }

    /// Looks at all places of a document, once an operation of it is lowered.
    pub(crate) fn finish(&self, document: &Document, operation: &Operation) {
        let bound = lock(&self.bound);
        let mut others = lock(&self.others);
        let mut place = |value: &Value| {
            value.places(&mut |name, value| {
                if !bound.contains(&address(value)) {
                    others.insert(name.into());
                }
            });
        };
        values(&operation.selection, &mut place);
        for fragment in &document.fragments {
            values(&fragment.selection, &mut place);
        }
    }

    fn bind(&self, value: &Value) {
        lock(&self.bound).insert(address(value));
    }

    fn note_other(&self, name: &str) {
        lock(&self.others).insert(name.into());
    }
}

fn lock<T>(set: &Mutex<T>) -> MutexGuard<'_, T> {
    set.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places of one document are told apart by where they stand in memory.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Calls `visit` with each value of arguments and directives.
fn values(selection: &[Selection], visit: &mut impl FnMut(&Value)) {
    for part in selection {
        let conditions = match part {
            Selection::Field(field) => {
                for argument in &field.arguments {
                    visit(&argument.value);
                }
                values(&field.selection, visit);
                &field.conditions
            }
            Selection::Spread(_, conditions) => conditions,
            Selection::Inline(parts, conditions) => {
                values(parts, visit);
                conditions
            }
        };
        for condition in conditions {
            visit(&condition.value);
        }
    }
}

impl<'d> Lowerer<'d> {
    /// Which values of a list are those of variables. Those of other variables count as its own.
    pub(super) fn origins(
        &self,
        relation: RelationId,
        field: &'d Field,
        filter: &Filter,
    ) -> Origins {
        let Some(trace) = self.trace else {
            return Origins::default();
        };
        let leaves = filter.leaves(self.schema, relation);
        let mut origins = Origins {
            filter: vec![None; leaves.len()],
            limit: self.counted(field, "limit", trace),
            offset: self.counted(field, "offset", trace),
        };
        for name in ["where", "id"] {
            let Some(argument) = field.argument(name) else {
                continue;
            };
            places(
                &argument.value,
                name.to_owned(),
                &mut |place, name, value| match self.compared(&leaves, &place, name) {
                    Some((leaf, number)) if place != "where" => {
                        origins.filter[leaf] = Some(number);
                        trace.bind(value);
                    }
                    _ => trace.note_other(name),
                },
            );
        }
        origins
    }

    /// The comparison whose value is a variable, by its place, and the variable's number.
    fn compared(&self, leaves: &[Leaf<'_>], place: &str, name: &str) -> Option<(usize, usize)> {
        let kind = self.variables.get(name)?.kind();
        let mut found = leaves.iter().enumerate();
        let mut found = found
            .by_ref()
            .filter(|(_, leaf)| *leaf.comparison.place == *place);
        let (number, leaf) = found.next()?;
        let relation = self.schema.relation(leaf.relation);
        let fits = match kind {
            JsonKind::Bool | JsonKind::Number | JsonKind::String => true,
            JsonKind::Array => matches!(leaf.comparison.operator, Operator::In | Operator::NotIn),
            JsonKind::Null | JsonKind::Object => false,
        };
        let is_only = found.next().is_none();
        let fits = fits && is_only && leaf.parameters == 1;
        let fits = fits && leaf.comparison.is_uniform(relation);
        fits.then_some((number, self.variables.number(name)?))
    }

    /// The number of the variable that says how many rows.
    fn counted(&self, field: &'d Field, name: &str, trace: &Trace) -> Option<usize> {
        let value = &field.argument(name)?.value;
        let Value::Variable(variable) = value else {
            return None;
        };
        let given = self.variables.get(variable)?;
        if given.kind() != JsonKind::Number {
            return None;
        }
        trace.bind(value);
        self.variables.number(variable)
    }
}

/// Calls `visit` with the place of each variable of a literal, as a filter names it, its name and
/// where it stands in the document.
fn places<'d>(value: &'d Value, place: String, visit: &mut impl FnMut(String, &'d str, &'d Value)) {
    match value {
        Value::Variable(name) => visit(place, name, value),
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                places(item, format!("{place}[{at}]"), visit);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                places(member, format!("{place}.{name}"), visit);
            }
        }
        _ => {}
    }
}
