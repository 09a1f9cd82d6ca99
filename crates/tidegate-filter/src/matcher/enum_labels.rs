//! Adapts compiled filters to enum types whose labels have changed.

use std::sync::Arc;

use tidegate_catalog::ColumnId;

use super::datum::Datum;
use super::scalar::Scalar;
use super::{KeyReader, MatchNode, Matcher, Operand, required_values};

/// Returns the current labels of a column, in order; `None` if they did not change.
pub(super) type Labels<'a> = dyn Fn(ColumnId) -> Option<Arc<[String]>> + 'a;

impl Matcher {
    /// The same matcher for enums whose labels have changed. If an enum has as many labels as
    /// before, its labels were only renamed, because PostgreSQL cannot drop single labels. `None`
    /// if the filter compares with a label that no longer exists.
    #[must_use]
    pub fn with_labels(&self, labels: &Labels<'_>) -> Option<Self> {
        let mut matcher = self.clone();
        matcher.node.relabel(labels)?;
        matcher.required_values = required_values::collect_required(&matcher.node).into();
        Some(matcher)
    }
}

impl KeyReader {
    /// The same reader with the current labels.
    #[must_use]
    pub fn with_labels(&self, labels: Arc<[String]>) -> Self {
        let mut scalar = self.scalar.clone();
        scalar.relabel(labels);
        Self { scalar }
    }
}

impl MatchNode {
    fn relabel(&mut self, labels: &Labels<'_>) -> Option<()> {
        match self {
            Self::All(nodes) | Self::Any(nodes) => {
                nodes.iter_mut().try_for_each(|node| node.relabel(labels))
            }
            Self::Not(node) => node.relabel(labels),
            Self::Compare(operand, _, value) => {
                if let Some(before) = operand.relabel(labels) {
                    *value = operand.relabelled(&before, value)?;
                }
                Some(())
            }
            Self::In(operand, list) => {
                if let Some(before) = operand.relabel(labels) {
                    let relabelled = list
                        .values
                        .iter()
                        .map(|value| operand.relabelled(&before, value));
                    list.values = relabelled.collect::<Option<_>>()?;
                }
                Some(())
            }
            Self::Null(..) | Self::Like(..) => Some(()),
        }
    }
}

impl Scalar {
    /// Replaces the labels of an enum and returns the old labels; `None` for other types. If the
    /// number of labels is the same, labels were only renamed. The scalar then also keeps the old
    /// labels, because a change that was logged before the renaming has the old name.
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
    /// Replaces the labels of the column and returns the old labels; returns `None` if they did not
    /// change.
    fn relabel(&mut self, labels: &Labels<'_>) -> Option<Arc<[String]>> {
        self.scalar.relabel(labels(self.column)?)
    }

    /// Converts the position of an enum label in `before`, the previous labels, to its position
    /// among the current labels. `None` if the label no longer exists. If the number of labels is
    /// the same, labels were only renamed, and the position stays. Other values are not changed.
    fn relabelled(&self, before: &[String], value: &Datum<'static>) -> Option<Datum<'static>> {
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
