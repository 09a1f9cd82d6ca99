//! What a request asks of the tables, with all its values: the input of planning.
//!
//! Selections hold what is asked for after fragments, directives and equal keys have been
//! resolved, so that each response key occurs once in a selection.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_catalog::{ColumnId, RelationId, RelationshipId};
use tidegate_filter::{Filter, Json};

/// One operation of a document.
#[derive(Debug)]
pub enum Operation<'a> {
    /// Root fields that read, in one snapshot.
    Query(Vec<Root<'a>>),
    /// Root fields that write, in order, in one transaction.
    Mutation(Vec<Root<'a>>),
}

/// A root field.
#[derive(Debug)]
pub struct Root<'a> {
    /// The response key.
    pub key: Arc<str>,
    /// What it asks for.
    pub field: RootField<'a>,
}

/// What a root field asks for.
#[derive(Debug)]
pub enum RootField<'a> {
    /// The rows of a relation.
    Get(RelationId, List),
    /// Counts and sums over the rows of a relation: always a list of groups.
    Aggregate(RelationId, Aggregate),
    /// New rows.
    Insert(RelationId, Insert<'a>),
    /// New values for rows.
    Update(RelationId, Update<'a>),
    /// The end of rows.
    Delete(RelationId, Delete),
    /// JSON text that is known already: `__typename`, introspection.
    Verbatim(Bytes),
    /// Text that the caller puts there: the answer has a gap, and [`Outcome::gaps`] its place.
    ///
    /// [`Outcome::gaps`]: crate::Outcome::gaps
    Gap,
}

/// The rows of a relation, or of one end of a relationship.
#[derive(Debug)]
pub struct List {
    /// Which rows.
    pub filter: Filter,
    /// In which order, before the order of the primary key.
    pub order: Vec<Order>,
    /// At most how many, as the request says.
    pub limit: Option<u64>,
    /// How many are left out first, as the request says.
    pub offset: Option<u64>,
    /// What of each row.
    pub selection: Selection,
    /// Which of its values are those of variables.
    pub origins: Origins,
}

/// Which values of a list are those of variables, by their numbers: what [`Template`] needs.
///
/// [`Template`]: crate::Template
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// By comparison of the filter, in the order of [`Filter::leaves`]; those behind the last one
    /// have values of their own.
    pub filter: Vec<Option<usize>>,
    /// The limit.
    pub limit: Option<usize>,
    /// The offset.
    pub offset: Option<usize>,
}

/// What is shown of a row, in the order of the response.
#[derive(Debug, Default)]
pub struct Selection {
    /// The fields.
    pub fields: Vec<Field>,
}

/// A field of a row.
#[derive(Debug)]
pub struct Field {
    /// The response key.
    pub key: Arc<str>,
    /// What it shows.
    pub shows: Shows,
}

/// What a field shows.
#[derive(Debug)]
pub enum Shows {
    /// The name of the row's GraphQL type.
    Typename,
    /// The value of a column.
    Column(ColumnId),
    /// Parts of the value of a range or geometric column, or of each element of an array of them.
    Parts(ColumnId, Vec<Part>),
    /// The row at the other end of a to-one relationship, or null.
    One(RelationshipId, Selection),
    /// The rows at the other end of a to-many relationship.
    Many(RelationshipId, List),
}

/// A part of a value that has parts.
#[derive(Clone, Debug)]
pub struct Part {
    /// The response key.
    pub key: Arc<str>,
    /// What it shows.
    pub shows: PartShows,
    /// Whether its GraphQL type is non-null, so that a flaw takes the value that it belongs to.
    pub not_null: bool,
}

/// What a part shows.
#[derive(Clone, Debug)]
pub enum PartShows {
    /// The name of the value's GraphQL type.
    Typename(Arc<str>),
    /// A member of the value's JSON form, by its name there; with parts of its own (or of each of
    /// its elements) when there are any.
    Member(&'static str, Vec<Part>),
    /// The value itself, which is a list: the parts of its elements.
    Itself(Vec<Part>),
}

/// A term of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// The column.
    pub column: ColumnId,
    /// Whether it descends.
    pub descending: bool,
    /// Where NULL stands; PostgreSQL's default when absent.
    pub nulls_first: Option<bool>,
}

/// New rows.
#[derive(Debug)]
pub struct Insert<'a> {
    /// One object a row. A column that an object lacks gets its default, an explicit null is NULL.
    pub rows: Vec<Json<'a>>,
    /// Where the rows stand in the request: `data`, or `objects`, whose elements are numbered.
    pub listed: bool,
    /// What happens to a row that is there already.
    pub on_conflict: Option<OnConflict>,
    /// What of each row is shown.
    pub returning: Selection,
}

/// What happens to a new row whose key is there already.
#[derive(Debug)]
pub struct OnConflict {
    /// Which conflicts are meant.
    pub target: ConflictTarget,
    /// The columns that take the new row's values; none: the row there stays as it is, and is not
    /// returned.
    pub update: Vec<ColumnId>,
}

/// Which conflicts are meant.
#[derive(Debug)]
pub enum ConflictTarget {
    /// Those of a constraint of the relation, by its name.
    Constraint(Box<str>),
    /// Those of the unique index over these columns.
    Columns(Vec<ColumnId>),
}

/// New values for the rows that pass.
#[derive(Debug)]
pub struct Update<'a> {
    /// Which rows; never all of them.
    pub filter: Filter,
    /// The new values.
    pub values: Vec<(ColumnId, Json<'a>)>,
    /// What of each row is shown.
    pub returning: Selection,
}

/// The end of the rows that pass.
#[derive(Debug)]
pub struct Delete {
    /// Which rows; never all of them.
    pub filter: Filter,
    /// What of each row is shown, as it was.
    pub returning: Selection,
}

/// Counts and sums.
#[derive(Debug)]
pub struct Aggregate {
    /// Over which rows.
    pub filter: Filter,
    /// By which columns they are grouped; none: one group of all rows.
    pub group_by: Vec<ColumnId>,
    /// What is shown of each group.
    pub fields: Vec<AggregateField>,
}

/// A field of a group.
#[derive(Debug)]
pub struct AggregateField {
    /// The response key.
    pub key: Arc<str>,
    /// What it shows.
    pub shows: AggregateShows,
}

/// What a field of a group shows.
#[derive(Debug)]
pub enum AggregateShows {
    /// The name of the group's GraphQL type.
    Typename(Arc<str>),
    /// How many rows.
    Count,
    /// The value of a column that the rows are grouped by, or parts of it.
    Group(ColumnId, Vec<Part>),
    /// An object of one value a column.
    Function(AggregateFunction, Vec<(Arc<str>, AggregateColumn)>),
}

/// A member of an aggregate function's object.
#[derive(Debug)]
pub enum AggregateColumn {
    /// The name of the object's GraphQL type.
    Typename(Arc<str>),
    /// The function over a column.
    Column(ColumnId),
}

/// An aggregate function over one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// `sum`
    Sum,
    /// `avg`
    Avg,
    /// `min`
    Min,
    /// `max`
    Max,
}
