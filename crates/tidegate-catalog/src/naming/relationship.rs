//! Derives the names of relationships.

use std::collections::{HashMap, HashSet};

use super::LastNumbers;
use super::case::{by_columns, camel_case};

/// A foreign key seen from one of its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelationshipEnd<'a> {
    /// The name of the relation at the other end.
    pub(crate) relation: &'a str,
    /// The name of the constraint.
    pub(crate) constraint: &'a str,
    /// The names of the referencing columns.
    pub(crate) columns: &'a [Box<str>],
}

/// The names of the relationships of one relation.
#[derive(Debug, Default)]
pub(crate) struct RelationshipNames {
    /// The one or two names of each foreign key of the relation.
    pub(crate) forward: Vec<Vec<Box<str>>>,
    /// The name of each foreign key that references the relation.
    pub(crate) reverse: Vec<Box<str>>,
}

/// Names the relationships of a relation whose columns have the field names `fields`. `forward` is
/// sorted by constraint, `reverse` by referencing relation and then by constraint.
///
/// No relationship gets the name of a column. The first foreign key to a relation is named after
/// the relation if the name is free. Each foreign key also has a name that is made of the name of
/// its constraint. A reverse relationship is named after the referencing relation, if only one
/// foreign key of that relation references this one and the name is free. Otherwise the name also
/// contains the referencing columns. If a name made of a constraint or a name with columns is
/// taken, a number is appended to it.
pub(crate) fn name_relationships(
    fields: &HashSet<&str>,
    forward: &[RelationshipEnd<'_>],
    reverse: &[RelationshipEnd<'_>],
) -> RelationshipNames {
    let mut taken = TakenNames {
        fields,
        names: HashSet::new(),
    };
    let mut numbers = LastNumbers::default();
    let mut seen = HashSet::new();
    let mut names = RelationshipNames::default();
    for end in forward {
        let name = camel_case(end.relation);
        let first = seen.insert(end.relation) && taken.take(&name);
        names
            .forward
            .push(first.then(|| name.into()).into_iter().collect());
    }
    for (end, names) in forward.iter().zip(&mut names.forward) {
        let name = camel_case(end.constraint);
        if names.first().is_none_or(|first| **first != *name) {
            names.push(numbers.first_free(&name, |name| taken.take(name)).into());
        }
    }
    let mut ends: HashMap<&str, u32> = HashMap::new();
    for end in reverse {
        *ends.entry(end.relation).or_default() += 1;
    }
    for end in reverse {
        let plain = camel_case(end.relation);
        let name = if ends[end.relation] == 1 && taken.take(&plain) {
            plain
        } else {
            let long = plain + &by_columns(end.columns.iter().map(|column| &**column));
            numbers.first_free(&long, |name| taken.take(name))
        };
        names.reverse.push(name.into());
    }
    names
}

struct TakenNames<'a> {
    fields: &'a HashSet<&'a str>,
    names: HashSet<String>,
}

impl TakenNames<'_> {
    fn take(&mut self, name: &str) -> bool {
        !self.fields.contains(name) && self.names.insert(name.to_owned())
    }
}
