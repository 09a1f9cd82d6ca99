//! A statement with its values.

use std::sync::Arc;

use super::params::Params;
use super::{Statement, Trust};
use crate::error::InputError;

/// A statement and the values of its placeholders: what an executor runs.
///
/// The values are still in the caller's form; the executor turns them into the text form of the
/// parameter's type once PostgreSQL has told that type, by [`crate::parameter::encode`].
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

impl Statement {
    /// Binds values to the placeholders: every placeholder needs one, and every value a
    /// placeholder.
    ///
    /// `type_hints` and `type_formats` are `(name, value)` pairs; an entry that names no
    /// placeholder is about a column of the result and has no effect here.
    ///
    /// # Errors
    ///
    /// [`InputError::MissingParameter`] and [`InputError::ExtraParameter`], each naming the
    /// parameter set and the placeholder.
    pub fn bind(
        self: &Arc<Self>,
        params: &Params<'_>,
        type_hints: &[(impl AsRef<str>, impl AsRef<str>)],
        type_formats: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<BoundStatement, InputError> {
        let _ = (params, type_hints, type_formats);
        unimplemented!()
    }
}

impl BoundStatement {
    /// Binds nothing: a statement without placeholders, run once.
    ///
    /// # Errors
    ///
    /// [`InputError::MissingParameter`] when the statement has placeholders.
    pub fn without_values(statement: Arc<Statement>) -> Result<Self, InputError> {
        const NONE: &[(&str, &str)] = &[];
        statement.bind(&Params::default(), NONE, NONE)
    }

    /// How errors name a value: `params.name`, or `params[set].name` when the request gave a
    /// list.
    pub fn place(&self, set: usize, placeholder: usize) -> String {
        let _ = (set, placeholder);
        unimplemented!()
    }

    /// Whether running the statement with these hints may leave session state: a hint that names
    /// a type of the database's own (a domain, whose check may call a function) may.
    pub fn trust(&self) -> Trust {
        unimplemented!()
    }
}
