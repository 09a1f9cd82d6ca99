//! Subscriptions: read, checked and lowered here, executed by whoever follows the log.

use std::sync::Arc;

use tidegate_catalog::model::{ColumnId, RelationId};
use tidegate_filter::Json;

/// Which change of a row an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// INSERT.
    Added,
    /// UPDATE.
    Updated,
    /// DELETE.
    Deleted,
}

impl Change {
    pub(crate) const ALL: [Self; 3] = [Self::Added, Self::Updated, Self::Deleted];

    /// What the field's name ends in.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Updated => "Updated",
            Self::Deleted => "Deleted",
        }
    }

    pub(crate) const fn event(self) -> &'static str {
        match self {
            Self::Added => "New rows",
            Self::Updated => "Changed rows, as they are now,",
            Self::Deleted => "Removed rows, as they were,",
        }
    }
}
