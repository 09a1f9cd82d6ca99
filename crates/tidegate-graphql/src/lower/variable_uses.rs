//! Finds the variables that are used only as parameters of statements.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_catalog::model::RelationId;
use tidegate_filter::{Filter, Leaf, Operator};
use tidegate_plan::operation::VariableSources;
use tidegate_values::json::JsonKind;

use super::Lowerer;
use crate::document::{Document, Field, Operation, Selection, Value};

/// Records where in a document variables become parameters of statements.
#[derive(Debug, Default)]
pub(crate) struct VariableUses {
    /// The memory address of each [`Value::Variable`] whose value becomes a parameter.
    bound: Mutex<BTreeSet<usize>>,
    /// The variables that are used in any other way.
    others: Mutex<BTreeSet<Box<str>>>,
}

impl VariableUses {
    /// Whether a variable is used only as a parameter. Must be called after
    /// [`VariableUses::finish`].
    pub(crate) fn is_bound(&self, variable: &str) -> bool {
        !lock(&self.others).contains(variable)
    }

    /// Visits all variables of the operation and of all fragments, and records those that are not
    /// parameters. Must be called after the operation was lowered.
    pub(crate) fn finish(&self, document: &Document, operation: &Operation) {
        let bound = lock(&self.bound);
        let mut others = lock(&self.others);
        let mut place = |value: &Value| {
            value.visit_variables(&mut |name, value| {
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

/// The memory address of a literal, which identifies its place in the document.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Calls `visit` with the value of each argument of a field or directive.
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
    /// Determines which values in the arguments `where`, `id`, `limit` and `offset` come from
    /// variables, and records the uses of the variables.
    pub(super) fn variable_sources(
        &self,
        relation: RelationId,
        field: &'d Field,
        filter: &Filter,
    ) -> VariableSources {
        let Some(variable_uses) = self.variable_uses else {
            return VariableSources::default();
        };
        let leaves = filter.leaves(self.schema, relation);
        let mut sources = VariableSources {
            filter: vec![None; leaves.len()],
            limit: self.record_argument(field, "limit", variable_uses),
            offset: self.record_argument(field, "offset", variable_uses),
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
                        sources.filter[leaf] = Some(number);
                        variable_uses.bind(value);
                    }
                    _ => variable_uses.note_other(name),
                },
            );
        }
        sources
    }

    /// The index of the comparison with the path `place`, and the index of the variable `name`.
    /// `None` unless exactly one comparison has this path, the variable's value is the only
    /// parameter of the comparison, and the SQL depends only on the JSON kind of this value.
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

    /// The index of the variable that is the value of the argument `name` (`limit` or `offset`).
    /// Records that the variable becomes a parameter. `None` if the argument is not a variable, or
    /// if the variable's value is not a number.
    fn record_argument(
        &self,
        field: &'d Field,
        name: &str,
        variable_uses: &VariableUses,
    ) -> Option<usize> {
        let value = &field.argument(name)?.value;
        let Value::Variable(variable) = value else {
            return None;
        };
        let given = self.variables.get(variable)?;
        if given.kind() != JsonKind::Number {
            return None;
        }
        variable_uses.bind(value);
        self.variables.number(variable)
    }
}

/// Calls `visit` for each variable of a literal, with the path of the variable, such as
/// `where.name`, the name of the variable, and the [`Value::Variable`] itself. A parsed filter has
/// the same path for the variable's value.
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
