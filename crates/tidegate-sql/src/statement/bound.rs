//! A statement with its values.

use std::sync::Arc;

use super::Statement;

/// A statement and the values of its placeholders: what an executor runs.
///
/// The values are still in the caller's form; the executor turns them into the text form of the
/// parameter's type once PostgreSQL has told that type, by `parameter::encode`.
#[derive(Clone, Debug)]
pub struct BoundStatement {
    /// The statement.
    pub statement: Arc<Statement>,
    /// Type hints by placeholder, in the order of [`Statement::placeholders`].
    pub hints: Vec<Option<TypeHint>>,
    /// Input formats (date letters) by placeholder, in the same order.
    pub formats: Vec<Option<String>>,
    /// One or more parameter sets; each has one value per placeholder, in the same order.
    pub sets: Vec<Vec<Parameter>>,
    /// How errors name a set: `params` when the request gave one object, `params[i]` otherwise.
    pub listed: bool,
}

/// The name of a PostgreSQL type as a caller writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TypeHint(pub String);

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// SQL NULL.
    Null,
    /// A JSON document, verbatim, so that numbers keep their digits.
    Json(Box<str>),
    /// The text form of the parameter's type, as PostgreSQL's input function takes it.
    Text(Box<str>),
}
