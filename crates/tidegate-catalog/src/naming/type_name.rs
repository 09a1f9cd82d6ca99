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
/// would have.
pub(crate) fn type_names<'a>(
    relations: impl Iterator<Item = &'a str>,
) -> (Vec<Box<str>>, Vec<Renamed>) {
    let mut taken = Taken::default();
    let mut numbers = Numbers::default();
    let mut renamed = Vec::new();
    let names = relations.map(|relation| {
        let wanted = pascal_case(relation);
        let name = numbers.first_free(&wanted, |name| taken.take(name));
        if name != wanted {
            renamed.push(Renamed {
                relation: relation.into(),
                taken: wanted.into(),
                type_name: name.as_str().into(),
            });
        }
        name.into()
    });
    (names.collect(), renamed)
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
