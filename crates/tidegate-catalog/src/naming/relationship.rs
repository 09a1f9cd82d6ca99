//! The names of relationships.

use std::collections::{HashMap, HashSet};

use super::Numbers;
use super::case::{by_columns, camel_case};

/// A foreign key as it concerns the names at one of its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    /// The relation at the other end.
    pub(crate) relation: &'a str,
    /// The constraint.
    pub(crate) constraint: &'a str,
    /// The referencing columns.
    pub(crate) columns: &'a [Box<str>],
}

/// The names of one relation's relationships.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Of each foreign key of the relation: one name or two.
    pub(crate) forward: Vec<Vec<Box<str>>>,
    /// Of each foreign key of another relation (or of itself) that references it.
    pub(crate) reverse: Vec<Box<str>>,
}

/// Names the relationships of a relation with these field names. Both lists are ordered: by the
/// constraint's name, and by the referencing relation's name and then the constraint's.
///
/// A field of a column keeps its name. The first foreign key to a relation is named as the relation
/// if that is free, and each by its constraint; a reverse one is named as the referencing relation
/// if it is the only one and that is free, and otherwise by its columns too.
pub(crate) fn name_relationships(
    fields: &HashSet<&str>,
    forward: &[End<'_>],
    reverse: &[End<'_>],
) -> Names {
    let mut taken = Taken {
        fields,
        names: HashSet::new(),
    };
    let mut numbers = Numbers::default();
    let mut seen = HashSet::new();
    let mut names = Names::default();
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

struct Taken<'a> {
    fields: &'a HashSet<&'a str>,
    names: HashSet<String>,
}

impl Taken<'_> {
    fn take(&mut self, name: &str) -> bool {
        !self.fields.contains(name) && self.names.insert(name.to_owned())
    }
}
