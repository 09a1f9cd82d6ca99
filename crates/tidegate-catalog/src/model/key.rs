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

/// The far side of a foreign key.
#[derive(Clone, Debug)]
pub enum Referenced {
    /// A relation of the same schema that the role may see, with the referenced columns in key
    /// order.
    Here(RelationId, Vec<ColumnId>),
    /// A relation of another schema, or one that the role may not see: no relationship comes of it.
    Elsewhere {
        /// The schema's name.
        schema: Box<str>,
        /// The relation's name.
        relation: Box<str>,
        /// The referenced columns' names, in key order.
        columns: Vec<Box<str>>,
    },
}
