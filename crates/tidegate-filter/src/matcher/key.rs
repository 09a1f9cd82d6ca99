//! Equalities that a hub can index subscriptions by.

use tidegate_catalog::ColumnId;
use tidegate_catalog::model::Column;
use tidegate_sql::Result;

use super::datum::Datum;
use super::scalar::Scalar;
use super::{Image, Node};
use crate::operator::Operator;

/// A column that equals one of these values in every row that passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The column.
    pub column: ColumnId,
    /// The values; none when no row can pass.
    pub keys: Vec<Key<'static>>,
}

/// A value of a column: equal keys of one column are values that PostgreSQL calls equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key<'a>(Datum<'a>);

impl Key<'_> {
    /// Whether it is known which values it equals; not of the label of an enum that nobody knows.
    pub fn is_placed(&self) -> bool {
        !matches!(self.0, Datum::Unplaced(_))
    }
}

/// Reads the keys of a column out of images.
#[derive(Clone, Debug)]
pub struct KeyReader {
    pub(super) scalar: Scalar,
}

impl KeyReader {
    /// A reader for a column that a [`Pin`] can be of; `None` for others.
    pub fn new(column: &Column) -> Option<Self> {
        let scalar = Scalar::of(&column.r#type)?;
        scalar
            .distinguishes_bytes(column)
            .then_some(Self { scalar })
    }

    /// The key of a column's value; `None` when it is NULL or missing.
    ///
    /// # Errors
    ///
    /// [`tidegate_sql::Error::Internal`] when the bytes are no value of the column's type.
    pub fn read<'a>(&self, image: Image<'a>) -> Result<Option<Key<'a>>> {
        Ok(self.scalar.read(image)?.map(Key))
    }
}

/// The equalities of a filter.
pub(super) fn pins(node: &Node) -> Vec<Pin> {
    match node {
        Node::Compare(operand, Operator::Eq, value) => vec![Pin {
            column: operand.column,
            keys: vec![Key(value.clone())],
        }],
        Node::In(operand, list) if !list.negated => vec![Pin {
            column: operand.column,
            keys: list.values.iter().cloned().map(Key).collect(),
        }],
        Node::All(nodes) => nodes.iter().flat_map(pins).collect(),
        Node::Any(nodes) => shared(nodes),
        _ => Vec::new(),
    }
}

/// What pins all alternatives pins their union.
fn shared(nodes: &[Node]) -> Vec<Pin> {
    let Some((first, rest)) = nodes.split_first() else {
        return Vec::new();
    };
    let mut shared = pins(first);
    for node in rest {
        let others = pins(node);
        shared.retain_mut(|pin| {
            let Some(other) = others.iter().find(|other| other.column == pin.column) else {
                return false;
            };
            pin.keys.extend(other.keys.iter().cloned());
            true
        });
    }
    for pin in &mut shared {
        let mut known = std::collections::HashSet::new();
        pin.keys.retain(|key| known.insert(key.clone()));
    }
    shared
}
