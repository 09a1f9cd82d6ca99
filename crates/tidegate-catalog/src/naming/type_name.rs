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
/// its aggregates, if that is free.
pub const AGGREGATES: [&str; 5] = [
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

/// The names of the types that one relation has.
#[derive(Clone, Debug)]
pub(crate) struct TypeNames {
    /// That of its rows.
    pub(crate) rows: Box<str>,
    /// Those of its aggregates, in the order of [`AGGREGATES`].
    pub(crate) aggregates: [Box<str>; AGGREGATES.len()],
}

/// The names of the types of each relation, in their order.
///
/// A name belongs to the relation whose own name gives it; of several such relations to the first
/// one. Every other relation gets a number, and then the aggregates do where a relation has their
/// name. So no relation loses its name to a new one, unless the names of both give the same.
pub(crate) fn type_names<'a>(
    relations: impl Iterator<Item = &'a str>,
) -> (Vec<TypeNames>, Vec<Renamed>) {
    let relations: Vec<_> = relations.map(|name| (name, pascal_case(name))).collect();
    let mut taken: HashSet<String> = RESERVED.iter().map(ToString::to_string).collect();
    let owners: Vec<_> = relations
        .iter()
        .map(|(_, wanted)| taken.insert(wanted.clone()))
        .collect();
    let mut numbers = Numbers::default();
    let (mut rows, mut renamed) = (Vec::with_capacity(relations.len()), Vec::new());
    for ((relation, wanted), owns) in relations.iter().zip(owners) {
        if owns {
            rows.push(wanted.clone());
            continue;
        }
        let name = numbers.first_free(wanted, |name| taken.insert(name.to_owned()));
        renamed.push(Renamed {
            relation: (*relation).into(),
            taken: wanted.as_str().into(),
            type_name: name.as_str().into(),
        });
        rows.push(name);
    }
    let mut aggregates = |rows: &str| {
        AGGREGATES.map(|suffix| {
            let wanted = format!("{rows}{suffix}");
            let name = numbers.first_free(&wanted, |name| taken.insert(name.to_owned()));
            name.into_boxed_str()
        })
    };
    let names = rows.into_iter().map(|rows| TypeNames {
        aggregates: aggregates(&rows),
        rows: rows.into_boxed_str(),
    });
    (names.collect(), renamed)
}
