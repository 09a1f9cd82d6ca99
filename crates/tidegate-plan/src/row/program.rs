//! The program that turns the columns of a row into JSON text.

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::model::Relationship;
use tidegate_catalog::{ColumnId, RelationId, RelationshipId, Schema};

use super::Cast;
use crate::operation::{AggregateFunction, Subfield};

/// How the rows of a statement become JSON text. Instructions and columns have the same order, so
/// that a row is read once from start to end.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The text around the values.
    pub(crate) literals: BytesMut,
    /// The instructions.
    pub(crate) ops: Vec<Op>,
    /// The selected columns, after those that group the rows.
    pub(crate) expressions: Vec<Expression>,
    /// The relations of the statement: `t0` is that of the level, the others are joined.
    pub(crate) tables: Vec<RelationId>,
    /// The joins of the others.
    pub(crate) joins: Vec<Join>,
    /// What is read by levels of its own.
    pub(crate) children: Vec<Child>,
}

/// An instruction. `text` is the range of the literals that is written before the value.
#[derive(Debug)]
pub(crate) enum Op {
    /// Only text.
    Text(Range<usize>),
    /// The value of the next column.
    Value {
        text: Range<usize>,
        /// The response key of the object of a joined row that encloses the value, if any.
        within: Option<Arc<str>>,
        key: Arc<str>,
        not_null: bool,
        form: OutputForm,
    },
    /// A joined row. If the next column is NULL there is none, and everything inside is skipped.
    Joined {
        text: Range<usize>,
        key: Arc<str>,
        /// The instruction after the last one of the row.
        end: usize,
        /// The column after the last one of the row.
        columns: usize,
    },
    /// The next columns are the key of a child level.
    Children { text: Range<usize>, child: usize },
}

impl Op {
    /// The text before its value.
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
pub(crate) enum OutputForm {
    /// The form of its type.
    Value,
    /// A string.
    Id,
    /// A number although it has 64 bits. No table has more rows than a double can count exactly.
    Count,
    /// Some subfields.
    Parts(Box<[Subfield]>),
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

/// A join along a to-one relationship.
#[derive(Debug)]
pub(crate) struct Join {
    /// The table on which the relationship starts.
    pub(crate) from: usize,
    /// The table to which it leads.
    pub(crate) to: usize,
    /// The relationship, of the relation on which it starts.
    pub(crate) relationship: RelationshipId,
}

/// A child level: rows that belong to rows of this level.
#[derive(Debug)]
pub(crate) struct Child {
    /// The response keys of the joined rows around it.
    pub(crate) around: Vec<Arc<str>>,
    /// The response key.
    pub(crate) name: Arc<str>,
    /// The relation that the relationship starts from.
    pub(crate) from: RelationId,
    /// The table of the program that has the key.
    pub(crate) table: usize,
    /// The range of the key among the columns of the statement.
    pub(crate) key: Range<usize>,
    /// The number of the child level.
    pub(crate) level: usize,
    /// The relationship, of the relation that it starts from.
    pub(crate) relationship: RelationshipId,
    /// Whether there is at most one row, which is shown as an object.
    pub(crate) one: bool,
}

impl Child {
    /// The relationship to the child level.
    pub(crate) fn relationship<'s>(&self, schema: &'s Schema) -> &'s Relationship {
        schema.relation(self.from).relationship(self.relationship)
    }
}
