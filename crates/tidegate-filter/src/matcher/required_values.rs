//! The values that columns must have in a row that passes a filter. Subscriptions are indexed by
//! them.

use tidegate_catalog::ColumnId;
use tidegate_catalog::model::Column;
use tidegate_sql::Result;

use super::datum::Datum;
use super::scalar::Scalar;
use super::{MatchNode, RowValue};
use crate::operator::Operator;

/// A column that has one of the values `keys` in every row that passes the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredValues {
    /// The column.
    pub column: ColumnId,
    /// The values that the column may have. The list is empty if no row can pass.
    pub keys: Vec<ComparableKey<'static>>,
}

/// A column value as a hash key. Two keys of a column are equal exactly if PostgreSQL finds the
/// values equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ComparableKey<'a>(Datum<'a>);

impl ComparableKey<'_> {
    /// Whether the value can be compared for equality. An enum label that the schema does not have
    /// cannot be compared.
    pub fn is_comparable(&self) -> bool {
        !matches!(self.0, Datum::UnknownLabel(_))
    }
}

/// Reads the values of a column from row images, each as a [`ComparableKey`].
#[derive(Clone, Debug)]
pub struct KeyReader {
    pub(super) scalar: Scalar,
}

impl KeyReader {
    /// A reader for the values of the column. `None` if the values cannot be tested for equality
    /// outside PostgreSQL. Such a column is in no [`RequiredValues`].
    pub fn new(column: &Column) -> Option<Self> {
        let scalar = Scalar::of(&column.r#type)?;
        scalar
            .distinguishes_bytes(column)
            .then_some(Self { scalar })
    }

    /// The key of a column's value. `None` for NULL or a missing value.
    ///
    /// # Errors
    ///
    /// [`tidegate_sql::Error::Internal`] if the bytes are not a value of the column's type.
    pub fn read<'a>(&self, image: RowValue<'a>) -> Result<Option<ComparableKey<'a>>> {
        Ok(self.scalar.read(image)?.map(ComparableKey))
    }
}

/// The required values of a filter. Negations, and comparisons other than `=` and `IN`, require
/// none.
pub(super) fn collect_required(node: &MatchNode) -> Vec<RequiredValues> {
    match node {
        MatchNode::Compare(operand, Operator::Eq, value) => vec![RequiredValues {
            column: operand.column,
            keys: vec![ComparableKey(value.clone())],
        }],
        MatchNode::In(operand, list) if !list.negated => vec![RequiredValues {
            column: operand.column,
            keys: list.values.iter().cloned().map(ComparableKey).collect(),
        }],
        MatchNode::All(nodes) => nodes.iter().flat_map(collect_required).collect(),
        MatchNode::Any(nodes) => shared(nodes),
        _ => Vec::new(),
    }
}

/// The required values of a disjunction. A disjunction requires values of a column if each of its
/// alternatives requires values of this column. The result contains the values of all alternatives.
fn shared(nodes: &[MatchNode]) -> Vec<RequiredValues> {
    let Some((first, rest)) = nodes.split_first() else {
        return Vec::new();
    };
    let mut shared = collect_required(first);
    for node in rest {
        let others = collect_required(node);
        shared.retain_mut(|required| {
            let Some(other) = others.iter().find(|other| other.column == required.column) else {
                return false;
            };
            required.keys.extend(other.keys.iter().cloned());
            true
        });
    }
    for required in &mut shared {
        let mut known = std::collections::HashSet::new();
        required.keys.retain(|key| known.insert(key.clone()));
    }
    shared
}
