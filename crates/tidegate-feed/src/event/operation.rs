//! The operations on rows to which clients subscribe: inserts, updates, deletes.

/// An operation on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// A set of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operations(u8);

impl Operations {
    /// The set of all three operations.
    pub const ALL: Self = Self(7);

    /// This set with `operation` added.
    #[must_use]
    pub const fn with(self, operation: Operation) -> Self {
        Self(self.0 | 1 << operation as u8)
    }

    /// Whether an operation is in the set.
    pub const fn has(self, operation: Operation) -> bool {
        self.0 & (1 << operation as u8) != 0
    }

    /// The operations in the set.
    pub fn iter(self) -> impl Iterator<Item = Operation> {
        [Operation::Insert, Operation::Update, Operation::Delete]
            .into_iter()
            .filter(move |operation| self.has(*operation))
    }

    /// Whether UPDATE or DELETE is in the set.
    pub(crate) fn need_changes(self) -> bool {
        self.has(Operation::Update) || self.has(Operation::Delete)
    }
}

impl From<Operation> for Operations {
    fn from(operation: Operation) -> Self {
        Self::default().with(operation)
    }
}
