//! The instructions that turn the columns of a row into its JSON text.

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::model::Relationship;
use tidegate_catalog::{ColumnId, RelationId, RelationshipId, Schema};

use super::Cast;
use crate::operation::{AggregateFunction, Part};

/// How the rows of a statement become JSON text. Instructions and columns stand in the same order,
/// so that a row is read once, from its first byte to its last.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// Text that stands around the values.
    pub(crate) literals: BytesMut,
    /// The instructions.
    pub(crate) ops: Vec<Op>,
    /// The columns that the statement returns, behind those that group the rows.
    pub(crate) expressions: Vec<Expression>,
    /// The relations that are read: `t0` is the level's own, the others are joined.
    pub(crate) tables: Vec<RelationId>,
    /// How the others are joined.
    pub(crate) joins: Vec<Join>,
    /// What is read by statements of its own.
    pub(crate) children: Vec<Child>,
}

/// An instruction; `text` is what stands in front of its value, as a range of the literals.
#[derive(Debug)]
pub(crate) enum Op {
    /// Only text.
    Text(Range<usize>),
    /// The value of the next column.
    Value {
        text: Range<usize>,
        /// The response key of the object of the row that it stands in, if it does.
        within: Option<Arc<str>>,
        key: Arc<str>,
        not_null: bool,
        form: Form,
    },
    /// A joined row: the next column is NULL when there is none; then what is inside is skipped.
    Joined {
        text: Range<usize>,
        key: Arc<str>,
        /// The instruction behind the row's last.
        end: usize,
        /// The column behind the row's last.
        columns: usize,
    },
    /// The next columns are the key of children.
    Children { text: Range<usize>, child: usize },
}

impl Op {
    /// What stands in front of its value.
    pub(crate) fn text(&self) -> Range<usize> {
        match self {
            Self::Text(text)
            | Self::Value { text, .. }
            | Self::Joined { text, .. }
            | Self::Children { text, .. } => text.clone(),
        }
    }
}

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Form {
    /// That of its type.
    Value,
    /// A string.
    Id,
    /// A number, although it has 64 bits: no table has more rows than a float counts exactly.
    Count,
    /// Some parts of it.
    Parts(Box<[Part]>),
}

/// A column that a statement returns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expression {
    /// A column of a table.
    Column {
        table: usize,
        column: ColumnId,
        cast: Cast,
    },
    /// `count(*)`.
    Count,
    /// An aggregate function over a column of `t0`.
    Function {
        function: AggregateFunction,
        column: ColumnId,
        cast: Cast,
    },
}

/// A relation joined along a to-one relationship.
#[derive(Debug)]
pub(crate) struct Join {
    /// The table that the relationship starts from.
    pub(crate) from: usize,
    /// The table that it leads to.
    pub(crate) to: usize,
    /// The relationship, of the relation that it starts from.
    pub(crate) relationship: RelationshipId,
}

/// Rows that hang on the rows of this level.
#[derive(Debug)]
pub(crate) struct Child {
    /// The response keys of the joined rows around them.
    pub(crate) around: Vec<Arc<str>>,
    /// The response key.
    pub(crate) name: Arc<str>,
    /// The relation that they hang on.
    pub(crate) from: RelationId,
    /// The table of the program that they hang on.
    pub(crate) table: usize,
    /// Which columns of the statement are the key.
    pub(crate) key: Range<usize>,
    /// The level that reads them.
    pub(crate) level: usize,
    /// The way to them, of the relation that they hang on.
    pub(crate) relationship: RelationshipId,
    /// Whether there is at most one, shown without a list.
    pub(crate) one: bool,
}

impl Child {
    /// The way to them.
    pub(crate) fn relationship<'s>(&self, schema: &'s Schema) -> &'s Relationship {
        schema.relation(self.from).relationship(self.relationship)
    }
}
