//! Checks that fields with the same response key are the same field (GraphQL, section 5.3.2, "Field
//! Selection Merging").
//!
//! The API has no interfaces and unions, so every fragment applies to its object. Therefore fields
//! with the same key in an object are always merged. If two fields are the same as a third, they
//! are the same as each other. So each field is compared only with the first field of its key, and
//! the check takes time linear in the number of fields.

use std::collections::{HashMap, HashSet};

use super::{Argument, Document, Field, Selection, Value};
use crate::error::{Code, Error, Errors};

/// Checks the operations of a document that is otherwise valid and within its limits.
///
/// # Errors
///
/// `GRAPHQL_VALIDATION_FAILED` for each field that differs from the first field with its response
/// key, with the locations of both fields.
pub(crate) fn check(document: &Document) -> Result<(), Vec<Error>> {
    let mut check = Check {
        document,
        errors: Errors::default(),
    };
    for operation in &document.operations {
        check.merged(&[&operation.selection]);
    }
    check.errors.into_result()
}

struct Check<'d> {
    document: &'d Document,
    errors: Errors,
}

/// The fields of one object, grouped by response key. The groups are in the order in which the
/// document first mentions the keys.
#[derive(Default)]
struct SiblingFields<'d> {
    /// For each response key, the index in `groups`.
    group_of_key: HashMap<&'d str, usize>,
    groups: Vec<Vec<&'d Field>>,
    /// The fragments whose fields are already included.
    seen: HashSet<usize>,
}

impl<'d> SiblingFields<'d> {
    fn collect(&mut self, document: &'d Document, selection: &'d [Selection]) {
        for part in selection {
            match part {
                Selection::Field(field) => {
                    let next = self.groups.len();
                    let at = *self.group_of_key.entry(&field.key).or_insert(next);
                    if at == next {
                        self.groups.push(Vec::new());
                    }
                    self.groups[at].push(field);
                }
                Selection::Inline(parts, _) => self.collect(document, parts),
                Selection::Spread(at, _) => {
                    if self.seen.insert(*at) {
                        self.collect(document, &document.fragments[*at].selection);
                    }
                }
            }
        }
    }
}

impl<'d> Check<'d> {
    /// Checks selections whose fields are merged into one object.
    fn merged(&mut self, selections: &[&'d [Selection]]) {
        let mut siblings = SiblingFields::default();
        for selection in selections {
            siblings.collect(self.document, selection);
        }
        for fields in siblings.groups {
            if self.errors.is_full() {
                return;
            }
            let Some((first, others)) = fields.split_first() else {
                continue;
            };
            let mut below = vec![&*first.selection];
            for other in others {
                match difference(first, other) {
                    None => below.push(&other.selection),
                    Some(reason) => self.fail(first, other, &reason),
                }
            }
            below.retain(|selection| !selection.is_empty());
            if !below.is_empty() {
                self.merged(&below);
            }
        }
    }

    fn fail(&mut self, first: &Field, other: &Field, reason: &str) {
        let key = &first.key;
        let message =
            format!("Fields `{key}` conflict because {reason}; different aliases would fetch both");
        let mut error = Error::new(Code::ValidationFailed, message);
        error.locations = vec![first.location, other.location];
        self.errors.push(error);
    }
}

fn difference(one: &Field, other: &Field) -> Option<String> {
    if one.name != other.name {
        let (one, other) = (&one.name, &other.name);
        return Some(format!("`{one}` and `{other}` are different fields"));
    }
    let same = has_same_arguments(&one.arguments, other);
    (!same).then(|| "they have different arguments".to_owned())
}

fn has_same_arguments(arguments: &[Argument], other: &Field) -> bool {
    arguments.len() == other.arguments.len()
        && arguments.iter().all(|argument| {
            let found = other.argument(&argument.name);
            found.is_some_and(|found| is_same(&argument.value, &found.value))
        })
}

/// Whether two literals are equal. Members of objects are unordered (GraphQL, section 2.9.8).
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            if one.len() != other.len() {
                return false;
            }
            let (one, other) = (sorted(one), sorted(other));
            let mut pairs = one.iter().zip(&other);
            pairs.all(|(one, other)| one.0 == other.0 && is_same(&one.1, &other.1))
        }
        _ => one == other,
    }
}

fn sorted(members: &[(Box<str>, Value)]) -> Vec<&(Box<str>, Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    members
}
