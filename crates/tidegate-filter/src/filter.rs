//! The parsed filter.

use tidegate_catalog::{ColumnId, RelationshipId};
use tidegate_values::Parameter;

use crate::operator::Operator;

/// A condition on the rows of one relation, checked against the catalog. As in SQL, it is true,
/// false or unknown for a row. A row passes only if the condition is true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The conjunction of filters; true when empty.
    All(Vec<Filter>),
    /// The disjunction of filters; false when empty.
    Any(Vec<Filter>),
    /// The negation of a filter.
    Not(Box<Filter>),
    /// The comparison of a column with a value or a list of values.
    Compare(Comparison),
    /// The condition that at least one related row passes the inner filter.
    Exists(RelationshipId, Box<Filter>),
}

/// The comparison of a column with a value or a list of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The column, which belongs to the filter's relation.
    pub column: ColumnId,
    /// The operator.
    pub operator: Operator,
    /// The operand. For [`Operator::In`] and [`Operator::NotIn`] it is a JSON array with at least
    /// one element; for [`Operator::IsNull`] and [`Operator::IsNotNull`] it is `Parameter::Null`.
    /// No other operand is NULL, except in a filter [without values](Filter::without_values).
    pub value: Parameter,
    /// Whether the value is compared as another numeric type than the column's. This is so for some
    /// unquoted numbers of a condition text, and for lists with such numbers, because PostgreSQL
    /// chooses the type of an unquoted number by its digits and not by the column.
    pub number: bool,
    /// The path of the value in the request, such as `where.and[1].price.gt`.
    pub place: Box<str>,
}

impl Filter {
    /// The filter that every row passes. An empty `where` is parsed as this filter.
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether every row passes, whatever its values are. Such filters come from null, `{}`,
    /// `{"and": []}`, `{"or": [{}]}` and `{"nin": []}`. Updates and deletes reject them, so that no
    /// table is emptied by accident.
    pub fn is_empty(&self) -> bool {
        self.constant() == Some(true)
    }

    /// The result that the filter has for every row; `None` if its structure alone does not
    /// determine the result.
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

    /// The conjunction of both filters.
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

    /// The path of the comparison whose operator satisfies `uses`; `None` if there is no such
    /// comparison, or more than one.
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

    /// The conjunction of the filters; if there is only one, that filter.
    pub(crate) fn all(mut filters: Vec<Self>) -> Self {
        match filters.len() {
            1 => filters.swap_remove(0),
            _ => Self::All(filters),
        }
    }
}
