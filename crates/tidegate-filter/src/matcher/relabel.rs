//! Enums whose labels have changed since a filter was compiled.

use std::sync::Arc;

use tidegate_catalog::ColumnId;

use super::datum::Datum;
use super::scalar::Scalar;
use super::{KeyReader, Matcher, Node, Operand, key};

/// The labels of columns, in their order; nothing where they are what they were.
pub(super) type Labels<'a> = dyn Fn(ColumnId) -> Option<Arc<[String]>> + 'a;

impl Matcher {
    /// The same matcher for enums whose labels are others now; `None` when it compares with one
    /// that is gone. As labels are never dropped, as many as before are the same, some by another
    /// name.
    #[must_use]
    pub fn with_labels(&self, labels: &Labels<'_>) -> Option<Self> {
        let mut matcher = self.clone();
        matcher.node.relabel(labels)?;
        matcher.pins = key::pins(&matcher.node).into();
        Some(matcher)
    }
}

impl KeyReader {
    /// The same reader for the labels of today.
    #[must_use]
    pub fn with_labels(&self, labels: Arc<[String]>) -> Self {
        let mut scalar = self.scalar.clone();
        scalar.relabel(labels);
        Self { scalar }
    }
}

impl Node {
    fn relabel(&mut self, labels: &Labels<'_>) -> Option<()> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter_mut().try_for_each(|node| node.relabel(labels))
            }
            Self::Not(node) => node.relabel(labels),
            Self::Compare(operand, _, value) => {
                if let Some(before) = operand.relabel(labels) {
                    *value = operand.moved(&before, value)?;
                }
                Some(())
            }
            Self::In(operand, list) => {
                if let Some(before) = operand.relabel(labels) {
                    let moved = list
                        .values
                        .iter()
                        .map(|value| operand.moved(&before, value));
                    list.values = moved.collect::<Option<_>>()?;
                }
                Some(())
            }
            Self::Null(..) | Self::Like(..) => Some(()),
        }
    }
}

impl Scalar {
    /// Takes the labels of today; gives those of before. A row that was written before a label got
    /// another name has the old one.
    fn relabel(&mut self, today: Arc<[String]>) -> Option<Arc<[String]>> {
        let Self::Enum(labels, former) = self else {
            return None;
        };
        let before = std::mem::replace(labels, today);
        if before.len() == labels.len() {
            *former = before.clone();
        }
        Some(before)
    }
}

impl Operand {
    /// Takes the labels of today; gives those of before where they are others.
    fn relabel(&mut self, labels: &Labels<'_>) -> Option<Arc<[String]>> {
        self.scalar.relabel(labels(self.column)?)
    }

    /// A value by the labels of today.
    fn moved(&self, before: &[String], value: &Datum<'static>) -> Option<Datum<'static>> {
        let (Scalar::Enum(today, _), Datum::Int(place)) = (&self.scalar, value) else {
            return Some(value.clone());
        };
        if today.len() == before.len() {
            return Some(value.clone());
        }
        let label = before.get(usize::try_from(*place).ok()?)?;
        let place = today.iter().position(|one| one == label)?;
        Some(Datum::Int(i64::try_from(place).ok()?))
    }
}
