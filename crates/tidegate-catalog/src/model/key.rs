//! Keys and other constraints of relations.

use super::{ColumnId, RelationId};

/// A primary key or unique constraint whose columns are all visible to the role.
#[derive(Clone, Debug)]
pub struct UniqueKey {
    /// The name of the constraint.
    pub name: Box<str>,
    /// The columns of the key, in key order.
    pub columns: Vec<ColumnId>,
}

/// A foreign key whose columns are all visible to the role.
#[derive(Clone, Debug)]
pub struct ForeignKey {
    /// The name of the constraint.
    pub name: Box<str>,
    /// The referencing columns, in key order.
    pub columns: Vec<ColumnId>,
    /// The referenced end of the foreign key.
    pub referenced: Referenced,
}

/// A constraint that is not used as a key: a check, an exclusion, or a key with columns that are
/// not visible to the role.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// The name of the constraint.
    pub name: Box<str>,
    /// The kind of the constraint.
    pub kind: ConstraintKind,
    /// The names of the constraint's columns, in key order.
    pub columns: Vec<Box<str>>,
}

/// The kind of a [`Constraint`].
#[derive(Clone, Debug)]
pub enum ConstraintKind {
    /// A primary key with columns that are not visible to the role.
    Primary,
    /// A unique constraint with columns that are not visible to the role.
    Unique,
    /// A foreign key with columns that are not visible to the role, or one that uses `PERIOD`.
    Foreign(Referenced),
    /// A `CHECK` constraint.
    Check,
    /// An `EXCLUDE` constraint.
    Exclude,
}

/// The referenced end of a foreign key.
#[derive(Clone, Debug)]
pub enum Referenced {
    /// A visible relation of the same schema, and its referenced columns in key order.
    SameSchema(RelationId, Vec<ColumnId>),
    /// A relation of another schema, or a relation of the same schema that is not visible to the
    /// role or has a referenced column that is not visible. The foreign key has no relationship.
    OtherSchema {
        /// The name of the schema.
        schema: Box<str>,
        /// The name of the relation.
        relation: Box<str>,
        /// The names of the referenced columns, in key order.
        columns: Vec<Box<str>>,
    },
}
