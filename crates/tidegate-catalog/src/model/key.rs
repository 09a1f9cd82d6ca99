//! Keys.

use super::{ColumnId, RelationId};

/// A primary key or a unique constraint, over columns that are all visible to the role.
#[derive(Clone, Debug)]
pub struct Key {
    /// The constraint's name.
    pub name: Box<str>,
    /// Its columns, in key order.
    pub columns: Vec<ColumnId>,
}

/// A foreign key of the relation, over columns that are all visible to the role.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: Box<str>,
    /// The referencing columns, in key order.
    pub columns: Vec<ColumnId>,
    /// What they reference.
    pub referenced: Referenced,
}

/// A constraint of the relation that serves as no key: a check, an exclusion, or a key over columns
/// of which some are not visible to the role.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The constraint's name.
    pub name: Box<str>,
    /// What it is.
    pub kind: ConstraintKind,
    /// The names of its columns, in key order.
    pub columns: Vec<Box<str>>,
}

/// What a [`Constraint`] is.
#[derive(Clone, Debug)]
pub enum ConstraintKind {
    /// A primary key that is not all visible.
    Primary,
    /// A unique constraint that is not all visible.
    Unique,
    /// A foreign key that is not all visible, or whose columns are not compared by equality alone.
    Foreign(Referenced),
    /// `CHECK`.
    Check,
    /// `EXCLUDE`.
    Exclude,
}

/// The far side of a foreign key.
#[derive(Clone, Debug)]
pub enum Referenced {
    /// A relation of the same schema that the role may see, with the referenced columns in key
    /// order.
    Here(RelationId, Vec<ColumnId>),
    /// A relation of another schema, or one that the role may not see, or of which it may not see all
    /// referenced columns: no relationship comes of it.
    Elsewhere {
        /// The schema's name.
        schema: Box<str>,
        /// The relation's name.
        relation: Box<str>,
        /// The referenced columns' names, in key order.
        columns: Vec<Box<str>>,
    },
}
