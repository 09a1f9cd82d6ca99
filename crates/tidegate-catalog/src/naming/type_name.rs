//! The type names of relations.

use std::collections::HashSet;

use super::Numbers;
use super::case::pascal_case;

/// Names of GraphQL types that no relation gets: the roots, the scalars and the value objects.
pub const RESERVED: &[&str] = &[
    "Query",
    "Mutation",
    "Subscription",
    "Int",
    "Float",
    "String",
    "Boolean",
    "ID",
    "JSON",
    "GeoJSON",
    "Date",
    "Time",
    "DateTime",
    "Point",
    "Line",
    "Lseg",
    "Box",
    "Circle",
    "Path",
    "Polygon",
    "Int4range",
    "Int8range",
    "Numrange",
    "Tsrange",
    "Tstzrange",
    "Daterange",
];

/// What stands behind a relation's type name in the names of the types (and of the root field) of
/// its aggregates. No other relation's type gets such a name.
pub const AGGREGATES: &[&str] = &[
    "Aggregate",
    "AggregateSum",
    "AggregateAvg",
    "AggregateMin",
    "AggregateMax",
];

/// A relation whose type could not have the name that its own name gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The relation, as PostgreSQL spells it.
    pub relation: Box<str>,
    /// The name that was taken.
    pub taken: Box<str>,
    /// The name that its type has instead.
    pub type_name: Box<str>,
}

/// The type name of each relation, in their order, which decides who gets a name that several
/// would have. Those whose names look like the types of aggregates come last: an odd table must
/// not take the name from the plain one whose aggregates are called so.
pub(crate) fn type_names<'a>(
    relations: impl Iterator<Item = &'a str>,
) -> (Vec<Box<str>>, Vec<Renamed>) {
    let relations: Vec<_> = relations.map(|name| (name, pascal_case(name))).collect();
    let mut order: Vec<usize> = (0..relations.len()).collect();
    order.sort_by_key(|place| looks_like_aggregates(&relations[*place].1));
    let mut taken = Taken::default();
    let mut numbers = Numbers::default();
    let mut names = vec![Box::default(); relations.len()];
    for place in order {
        let wanted = &relations[place].1;
        names[place] = numbers
            .first_free(wanted, |name| taken.take(name))
            .into_boxed_str();
    }
    let renamed = relations.iter().zip(&names);
    let renamed = renamed
        .filter(|((_, wanted), name)| **wanted != ***name)
        .map(|((relation, wanted), name)| Renamed {
            relation: (*relation).into(),
            taken: wanted.as_str().into(),
            type_name: name.clone(),
        })
        .collect();
    (names, renamed)
}

fn looks_like_aggregates(name: &str) -> bool {
    AGGREGATES.iter().any(|suffix| name.ends_with(suffix))
}

/// The names that relations have, and those that their aggregates have.
#[derive(Default)]
struct Taken {
    names: HashSet<String>,
    aggregates: HashSet<String>,
}

impl Taken {
    fn take(&mut self, name: &str) -> bool {
        let aggregates = || AGGREGATES.iter().map(|suffix| format!("{name}{suffix}"));
        if RESERVED.contains(&name)
            || self.aggregates.contains(name)
            || aggregates().any(|derived| self.names.contains(&derived))
            || !self.names.insert(name.to_owned())
        {
            return false;
        }
        self.aggregates.extend(aggregates());
        true
    }
}
