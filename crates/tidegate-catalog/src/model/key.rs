//! Keys.

use super::{ColumnId, RelationId};

/// A primary key or unique constraint whose columns are all visible to the role.
#[derive(Clone, Debug)]
pub struct UniqueKey {
    /// The constraint's name.
    pub name: Box<str>,
    /// Its columns, in key order.
    pub columns: Vec<ColumnId>,
}

/// A foreign key whose columns are all visible to the role.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: Box<str>,
    /// The referencing columns, in key order.
    pub columns: Vec<ColumnId>,
    /// What they reference.
    pub referenced: Referenced,
}

/// A constraint that is not used as a key: a check, an exclusion, or a key with columns that are
/// not visible to the role.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The constraint's name.
    pub name: Box<str>,
    /// What it is.
    pub kind: ConstraintKind,
    /// The names of its columns, in key order.
    pub columns: Vec<Box<str>>,
}

/// The kind of a [`Constraint`].
#[derive(Clone, Debug)]
pub enum ConstraintKind {
    /// A primary key with columns that are not visible.
    Primary,
    /// A unique constraint with columns that are not visible.
    Unique,
    /// A foreign key with columns that are not visible, or that are not compared by equality alone.
    Foreign(Referenced),
    /// `CHECK`.
    Check,
    /// `EXCLUDE`.
    Exclude,
}

/// The referenced end of a foreign key.
#[derive(Clone, Debug)]
pub enum Referenced {
    /// A visible relation of the same schema, with the referenced columns in key order.
    Here(RelationId, Vec<ColumnId>),
    /// A relation of another schema, or a relation or column that is not visible. There is no
    /// relationship for it.
    Elsewhere {
        /// The schema's name.
        schema: Box<str>,
        /// The relation's name.
        relation: Box<str>,
        /// The referenced columns' names, in key order.
        columns: Vec<Box<str>>,
    },
}
