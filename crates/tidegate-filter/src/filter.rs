//! Filters as values.

use tidegate_catalog::{ColumnId, RelationshipId};
use tidegate_values::Parameter;

use crate::operator::Operator;

/// A condition on the rows of one relation, checked against the catalog. Its truth is that of SQL:
/// true, false or unknown, and only true lets a row pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them; true when there are none.
    All(Vec<Filter>),
    /// One of them; false when there are none.
    Any(Vec<Filter>),
    /// Its negation.
    Not(Box<Filter>),
    /// A column and values.
    Compare(Comparison),
    /// There is a row at the other end that passes.
    Exists(RelationshipId, Box<Filter>),
}

/// A column compared with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The column of the filter's relation.
    pub column: ColumnId,
    /// How.
    pub operator: Operator,
    /// With what: one value; for [`Operator::In`] and [`Operator::NotIn`] one that is a JSON array
    /// with elements; for [`Operator::IsNull`] and [`Operator::IsNotNull`] nothing, which is
    /// `Parameter::Null`. No other value is NULL.
    pub value: Parameter,
    /// Whether the value is a number in an SQL text that PostgreSQL compares as a number of a type
    /// of its own, and not as one of the column's.
    pub number: bool,
    /// Where the value stands in the request, such as `where.and[1].price.gt`.
    pub place: Box<str>,
}

impl Filter {
    /// The filter that every row passes: what a request gives that says nothing.
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether it keeps no row out, whatever the rows hold: null and `{}` do, and so do `{"and":
    /// []}`, `{"or": [{}]}` and `{"nin": []}`. An update or a delete refuses such a filter, so
    /// that nobody empties a table by accident.
    pub fn is_empty(&self) -> bool {
        self.constant() == Some(true)
    }

    /// The truth value that it has for every row, when its shape alone tells.
    fn constant(&self) -> Option<bool> {
        let decides = |filters: &[Self], value: bool| {
            let constants = || filters.iter().map(Self::constant);
            if constants().any(|constant| constant == Some(value)) {
                return Some(value);
            }
            constants()
                .all(|constant| constant == Some(!value))
                .then_some(!value)
        };
        match self {
            Self::All(filters) => decides(filters, false),
            Self::Any(filters) => decides(filters, true),
            Self::Not(filter) => filter.constant().map(|constant| !constant),
            Self::Compare(_) | Self::Exists(..) => None,
        }
    }

    /// Both of them.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::All(filters), other) if filters.is_empty() => other,
            (filter, Self::All(others)) if others.is_empty() => filter,
            (Self::All(mut filters), other) => {
                filters.push(other);
                Self::All(filters)
            }
            (filter, other) => Self::All(vec![filter, other]),
        }
    }

    /// Where the one value stands that is used by an operator for which `uses` says yes; `None`
    /// when there are several, or none.
    pub fn only_place(&self, uses: impl Fn(Operator) -> bool) -> Option<&str> {
        let mut places = Vec::new();
        self.places(&uses, &mut places);
        match places[..] {
            [place] => Some(place),
            _ => None,
        }
    }

    fn places<'f>(&'f self, uses: &dyn Fn(Operator) -> bool, places: &mut Vec<&'f str>) {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                for filter in filters {
                    filter.places(uses, places);
                }
            }
            Self::Not(filter) | Self::Exists(_, filter) => filter.places(uses, places),
            Self::Compare(comparison) if uses(comparison.operator) => {
                places.push(&comparison.place);
            }
            Self::Compare(_) => {}
        }
    }

    /// All of them, without a level for a single one.
    pub(crate) fn all(mut filters: Vec<Self>) -> Self {
        match filters.len() {
            1 => filters.swap_remove(0),
            _ => Self::All(filters),
        }
    }
}
