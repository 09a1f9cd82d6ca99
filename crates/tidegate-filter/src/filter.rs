//! Filters as values.

use tidegate_catalog::{ColumnId, RelationshipId};
use tidegate_sql::Parameter;

/// A condition on the rows of one relation, checked against the catalog. Its truth is that of SQL:
/// true, false or unknown, and only true lets a row pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them; true when there are none.
    All(Vec<Filter>),
    /// One of them; false when there are none.
    Any(Vec<Filter>),
    /// Its negation.
    Not(Box<Filter>),
    /// A column and values.
    Compare(Comparison),
    /// There is a row at the other end that passes.
    Exists(RelationshipId, Box<Filter>),
}

/// A column compared with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The column of the filter's relation.
    pub column: ColumnId,
    /// How.
    pub operator: Operator,
    /// With what: one value; for [`Operator::In`] and [`Operator::NotIn`] one that is a JSON array;
    /// for [`Operator::IsNull`] and [`Operator::IsNotNull`] nothing, which is `Parameter::Null`.
    pub value: Parameter,
    /// Where the value stands in the request, such as `where.and[1].price.gt`.
    pub place: Box<str>,
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Eq,
    /// `<>`
    Neq,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `= any`
    In,
    /// `<> all`
    NotIn,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
    /// `LIKE`
    Like,
    /// `ILIKE`
    ILike,
    /// A prefix of the text.
    StartsWith,
    /// A suffix of the text.
    EndsWith,
    /// A part of the text; for arrays, ranges and jsonb `@>`.
    Contains,
    /// `~`
    Regex,
    /// `~*`
    IRegex,
    /// `<@`
    ContainedBy,
    /// `&&`
    Overlaps,
}
