//! Statements for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{BoundStatement, QueryOptions, Statement};
pub(crate) use tidegate_testkit::{CollectedRows, Rows};
use tidegate_values::Parameter;

/// A builder of statements.
#[derive(Clone)]
pub(crate) struct Sql {
    pub(crate) bound: BoundStatement,
    options: QueryOptions,
}

impl Sql {
    /// The statement, with one empty parameter set.
    pub(crate) fn new(text: &str) -> Self {
        let statement = Arc::new(Statement::parse(text).unwrap());
        let count = statement.placeholders().len();
        let bound = BoundStatement {
            statement,
            hints: vec![None; count],
            formats: vec![None; count],
            sets: Vec::new(),
            listed: true,
            places: Vec::new(),
        };
        Self {
            bound,
            options: QueryOptions::default(),
        }
    }

    /// Adds a set of values, each as JSON.
    pub(crate) fn set<const N: usize>(mut self, values: [&str; N]) -> Self {
        let value = |json: &str| match json {
            "null" => Parameter::Null,
            json => Parameter::Json(json.into()),
        };
        self.bound
            .sets
            .push(values.iter().map(|json| value(json)).collect());
        self
    }

    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.options.deadline = Some(Instant::now() + time);
        self
    }

    pub(crate) fn options(&self) -> &QueryOptions {
        &self.options
    }
}
