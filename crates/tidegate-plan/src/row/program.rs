//! The program that turns the columns of a row into JSON text.

use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::model::Relationship;
use tidegate_catalog::{ColumnId, RelationId, RelationshipId, Schema};

use super::Cast;
use crate::operation::{AggregateFunction, Subfield};

/// The index that means: no row, or no slot.
pub(crate) const NONE: u32 = u32::MAX;

/// A program that turns the rows of a statement into JSON text. Its instructions are in the order
/// of the columns, so that each row is read once from start to end.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The text that is written around the values.
    pub(crate) literals: BytesMut,
    pub(crate) ops: Vec<Op>,
    /// The selected columns. In the result they follow the columns that assign rows to lists.
    pub(crate) expressions: Vec<Expression>,
    /// The relations that the statement reads. The first has the alias `t0` and is the relation of
    /// the level; the others are joined to it.
    pub(crate) tables: Vec<RelationId>,
    /// The joins of the relations after `t0`.
    pub(crate) joins: Vec<Join>,
    /// The relationships whose rows are read by child levels.
    pub(crate) children: Vec<Child>,
}

/// An instruction. Its `text` is a range of bytes in [`Program::literals`], which are written
/// before the effect of the instruction.
#[derive(Debug)]
pub(crate) enum Op {
    /// Writes only text.
    Text(Range<usize>),
    /// Writes the value of the next column.
    Value {
        text: Range<usize>,
        /// The response key of the aggregate function whose object contains the value; `None` if
        /// the value is a field of the row itself or of a joined row.
        within: Option<Arc<str>>,
        key: Arc<str>,
        not_null: bool,
        form: OutputForm,
    },
    /// Begins the object of a joined row. If the next column is NULL, there is no such row: `null`
    /// is written, and the instructions before `end` are skipped.
    Joined {
        text: Range<usize>,
        key: Arc<str>,
        /// The index of the instruction that follows those of the joined row.
        end: usize,
        /// The index of the column that follows those of the joined row.
        columns: usize,
    },
    /// Records an insertion point for the rows of a child level. The next columns are the key by
    /// which these rows are found.
    Children { text: Range<usize>, child: usize },
}

impl Op {
    /// The range of the bytes in [`Program::literals`] that are written before the effect.
    pub(crate) fn text(&self) -> Range<usize> {
        match self {
            Self::Text(text)
            | Self::Value { text, .. }
            | Self::Joined { text, .. }
            | Self::Children { text, .. } => text.clone(),
        }
    }
}

/// The form in which a value is written.
#[derive(Debug)]
pub(crate) enum OutputForm {
    /// The form that the column's type has in GraphQL.
    Value,
    /// A string, because the value is an `ID`.
    Id,
    /// A number. Other 64-bit integers are strings, because a double cannot represent all of them
    /// exactly. A count of rows is small enough.
    Count,
    /// An object with the selected subfields of the value, or a list of such objects.
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
    /// The number of rows, `count(*)`.
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
    /// The index of the table at which the relationship starts.
    pub(crate) from: usize,
    /// The index of the table to which the relationship leads.
    pub(crate) to: usize,
    /// The relationship. The id belongs to the relation of the table `from`.
    pub(crate) relationship: RelationshipId,
}

/// A child level, whose rows belong to rows of this level.
#[derive(Debug)]
pub(crate) struct Child {
    /// The response keys of the joined rows that enclose the child, the outermost first.
    pub(crate) around: Vec<Arc<str>>,
    /// The response key of the child.
    pub(crate) name: Arc<str>,
    /// The relation at which the relationship starts.
    pub(crate) from: RelationId,
    /// The index, in the program, of the table that has the key columns.
    pub(crate) table: usize,
    /// The range of the key columns among the expressions of the program.
    pub(crate) key: Range<usize>,
    /// The index of the child level in the list of the levels of the root field. Each level comes
    /// after its parent in this list.
    pub(crate) level: usize,
    /// The relationship that leads to the child. The id belongs to the relation `from`.
    pub(crate) relationship: RelationshipId,
    /// Whether the child has at most one row, which is written as an object and not as a list.
    pub(crate) one: bool,
}

impl Child {
    /// The relationship that leads to the child level.
    pub(crate) fn relationship<'s>(&self, schema: &'s Schema) -> &'s Relationship {
        schema.relation(self.from).relationship(self.relationship)
    }
}

/// Converts an offset to 32 bits. The size limit of the text keeps offsets in range.
pub(super) fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
