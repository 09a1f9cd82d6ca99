//! The input of planning: an operation on tables, in which all values have been resolved.
//!
//! In each selection, fragments and directives have been resolved, and fields with the same
//! response key have been merged. So each response key occurs once.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_catalog::{ColumnId, RelationId, RelationshipId};
use tidegate_filter::{Filter, Json};

/// One operation of a document.
#[derive(Debug)]
pub enum Operation<'a> {
    /// Root fields that read, all in one snapshot of the database.
    Query(Vec<Root<'a>>),
    /// Root fields that write, one after the other in one transaction.
    Mutation(Vec<Root<'a>>),
}

/// A root field.
#[derive(Debug)]
pub struct Root<'a> {
    /// The key of the field in the response.
    pub key: Arc<str>,
    /// The operation of the field.
    pub field: RootField<'a>,
}

/// The operation of a root field: a read or a write of a relation, or a field with a fixed text.
#[derive(Debug)]
pub enum RootField<'a> {
    /// Reads rows of a relation.
    Get(RelationId, List),
    /// Aggregates rows of a relation. The result is always a list of groups.
    Aggregate(RelationId, Aggregate),
    /// Inserts rows.
    Insert(RelationId, Insert<'a>),
    /// Updates rows.
    Update(RelationId, Update<'a>),
    /// Deletes rows.
    Delete(RelationId, Delete),
    /// A field whose JSON text is known before any statement runs, such as `__typename` or
    /// introspection.
    Verbatim(Bytes),
    /// A field whose JSON text is not part of the plan. The caller inserts the text into the
    /// output, at the offset that [`PlanOutcome::insertion_points`] reports.
    ///
    /// [`PlanOutcome::insertion_points`]: crate::PlanOutcome::insertion_points
    Inserted,
}

/// A list of rows of a relation, or of the rows that a relationship leads to.
#[derive(Debug)]
pub struct List {
    /// The condition on the rows.
    pub filter: Filter,
    /// The order of the rows. The plan appends the primary key, or else another unique key, if the
    /// request has a limit or an offset.
    pub order: Vec<Order>,
    /// The `limit` of the request, if it has one.
    pub limit: Option<u64>,
    /// The `offset` of the request, if it has one.
    pub offset: Option<u64>,
    /// The fields of each row in the response.
    pub selection: Selection,
    /// Which values of the list come from variables.
    pub origins: VariableSources,
}

/// Which values of a list come from variables of the request. A number is the index of the variable
/// in the operation; `None` means that the value is a constant. [`Template`] needs these numbers.
///
/// [`Template`]: crate::Template
#[derive(Clone, Debug, Default)]
pub struct VariableSources {
    /// The variable of each comparison in the filter, in the order of [`Filter::leaves`]. If the
    /// vector is shorter, the remaining comparisons have constant values.
    pub filter: Vec<Option<usize>>,
    /// The variable that contains the limit.
    pub limit: Option<usize>,
    /// The variable that contains the offset.
    pub offset: Option<usize>,
}

/// The fields of a row, in the order of the response.
#[derive(Debug, Default)]
pub struct Selection {
    /// The fields, in the order of the response.
    pub fields: Vec<SelectedField>,
}

/// A field of a row.
#[derive(Debug)]
pub struct SelectedField {
    /// The key of the field in the response.
    pub key: Arc<str>,
    /// The content of the field.
    pub output: Output,
}

/// The content of a field.
#[derive(Debug)]
pub enum Output {
    /// The name of the row's GraphQL type.
    Typename,
    /// The value of a column.
    Column(ColumnId),
    /// Subfields of a range or geometric value. If the column is an array of such values, the
    /// subfields of each element.
    Parts(ColumnId, Vec<Subfield>),
    /// The related row of a to-one relationship, or null.
    One(RelationshipId, Selection),
    /// The related rows of a to-many relationship.
    Many(RelationshipId, List),
}

/// A field of a value that is a JSON object, such as the lower bound of a range.
#[derive(Clone, Debug)]
pub struct Subfield {
    /// The key of the subfield in the response.
    pub key: Arc<str>,
    /// The content of the subfield.
    pub output: SubfieldOutput,
    /// Whether the subfield's GraphQL type is non-null, so that a field error makes the enclosing
    /// value null.
    pub not_null: bool,
}

/// The content of a subfield.
#[derive(Clone, Debug)]
pub enum SubfieldOutput {
    /// The name of the value's GraphQL type.
    Typename(Arc<str>),
    /// A member of the value's JSON object: the name of the member, and the selected subfields if
    /// the member is an object or a list of objects.
    Member(&'static str, Vec<Subfield>),
    /// The value itself, which is a list of objects, with the selected subfields of each element.
    Itself(Vec<Subfield>),
}

/// One term of `orderBy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// The column.
    pub column: ColumnId,
    /// Whether the order is descending.
    pub descending: bool,
    /// Whether NULLs come first (`true`) or last (`false`). With `None` PostgreSQL's default
    /// applies.
    pub nulls_first: Option<bool>,
}

/// The rows of an insert.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The rows, each as a JSON object. A missing column gets its default. An explicit null is
    /// stored as NULL.
    pub rows: Vec<Json<'a>>,
    /// Whether the request has a list of rows. If so, errors name a row by the path `objects` with
    /// the index of the row. Otherwise they name it by the path `data`.
    pub listed: bool,
    /// How a row that conflicts with an existing row is handled; `None` if a conflict is an error.
    pub on_conflict: Option<OnConflict>,
    /// The fields that are returned of each inserted row.
    pub returning: Selection,
}

/// How an insert handles a row that conflicts with an existing row.
#[derive(Debug)]
pub struct OnConflict {
    /// The conflicts that are handled. Other conflicts are errors.
    pub target: ConflictTarget,
    /// The columns of the existing row that are overwritten with the new row's values. If the list
    /// is empty, the existing row is unchanged and is not returned.
    pub update: Vec<ColumnId>,
}

/// The conflicts that `on conflict` applies to.
#[derive(Debug)]
pub enum ConflictTarget {
    /// Conflicts with a constraint of the relation.
    Constraint(Box<str>),
    /// Conflicts with a unique index over these columns.
    Columns(Vec<ColumnId>),
}

/// An update of rows.
#[derive(Debug)]
pub struct Update<'a> {
    /// The condition on the rows. An empty filter is an error
    /// ([`Error::Unbounded`](crate::Error::Unbounded)).
    pub filter: Filter,
    /// The columns that change, with their new values.
    pub values: Vec<(ColumnId, Json<'a>)>,
    /// The fields that are returned of each updated row.
    pub returning: Selection,
}

/// A delete of rows.
#[derive(Debug)]
pub struct Delete {
    /// The condition on the rows. An empty filter is an error
    /// ([`Error::Unbounded`](crate::Error::Unbounded)).
    pub filter: Filter,
    /// The fields that are returned of each deleted row.
    pub returning: Selection,
}

/// An aggregate over rows.
#[derive(Debug)]
pub struct Aggregate {
    /// The condition on the rows.
    pub filter: Filter,
    /// The columns to group by. Without columns, all rows are one group.
    pub group_by: Vec<ColumnId>,
    /// The fields of each group.
    pub fields: Vec<AggregateField>,
}

/// A field of a group.
#[derive(Debug)]
pub struct AggregateField {
    /// The key of the field in the response.
    pub key: Arc<str>,
    /// The content of the field.
    pub output: AggregateOutput,
}

/// The content of a field of a group.
#[derive(Debug)]
pub enum AggregateOutput {
    /// The name of the group's GraphQL type.
    Typename(Arc<str>),
    /// The number of rows.
    Count,
    /// The value of a grouping column. If the list of subfields is not empty, only these subfields
    /// of the value are written.
    Group(ColumnId, Vec<Subfield>),
    /// An aggregate function over several columns, as an object with one member for each column.
    Function(AggregateFunction, Vec<(Arc<str>, AggregateColumn)>),
}

/// A member of the object of an aggregate function.
#[derive(Debug)]
pub enum AggregateColumn {
    /// The name of the object's GraphQL type.
    Typename(Arc<str>),
    /// The value of the function over a column.
    Column(ColumnId),
}

/// An aggregate function over one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// The function `sum`.
    Sum,
    /// The function `avg`.
    Avg,
    /// The function `min`.
    Min,
    /// The function `max`.
    Max,
}
