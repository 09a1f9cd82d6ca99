//! Derives the type names of relations.

use std::collections::HashSet;

use super::LastNumbers;
use super::case::pascal_case;

/// The type names that relations must not get, because root types, scalars and value objects have
/// them.
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

/// The suffixes of the type names for a relation's aggregates. The first suffix is for the type of
/// the groups that the root field returns. The others are for the aggregate functions.
pub const AGGREGATES: [&str; 5] = [
    "Aggregate",
    "AggregateSum",
    "AggregateAvg",
    "AggregateMin",
    "AggregateMax",
];

/// A relation whose type name got a number, because its name in `PascalCase` was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name of the relation, as PostgreSQL stores it.
    pub relation: Box<str>,
    /// The type name that was taken.
    pub taken: Box<str>,
    /// The type name that the relation has instead.
    pub type_name: Box<str>,
}

/// The type names of one relation.
#[derive(Clone, Debug)]
pub(crate) struct TypeNames {
    /// The name of the type of its rows.
    pub(crate) rows: Box<str>,
    /// The names of the types of its aggregates, in the order of [`AGGREGATES`].
    pub(crate) aggregates: [Box<str>; AGGREGATES.len()],
}

/// The type names of all relations, in the order of the relations. Also returns the relations whose
/// type name got a number.
///
/// If several relations have the same name in `PascalCase`, the first relation gets that name as
/// its type name, and the others get it with a number. A reserved name always gets a number. Names
/// with a number are chosen after all names without one, and the type names of aggregates last.
/// Therefore a new relation does not change the type name of a relation that has no number, unless
/// both have the same name in `PascalCase`.
pub(crate) fn type_names<'a>(
    relations: impl Iterator<Item = &'a str>,
) -> (Vec<TypeNames>, Vec<Renamed>) {
    let relations: Vec<_> = relations.map(|name| (name, pascal_case(name))).collect();
    let mut taken: HashSet<String> = RESERVED.iter().map(ToString::to_string).collect();
    let owners: Vec<_> = relations
        .iter()
        .map(|(_, wanted)| taken.insert(wanted.clone()))
        .collect();
    let mut numbers = LastNumbers::default();
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
