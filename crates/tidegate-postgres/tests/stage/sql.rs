//! Statements for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{Author, BoundStatement, Login, QueryOptions, Result, Statement, TypeHint};
use tidegate_values::Parameter;

use super::{Gathered, Rows, Stage};

/// A statement being put together.
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

    /// One more set of values, each in JSON.
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

    /// A type hint for the first placeholder.
    pub(crate) fn hint(mut self, name: &str) -> Self {
        self.bound.hints[0] = Some(TypeHint(name.to_owned()));
        self
    }

    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.options.deadline = Some(Instant::now() + time);
        self
    }

    /// Says who wrote the text.
    pub(crate) fn by(mut self, author: Author) -> Self {
        self.options.author = author;
        self
    }

    pub(crate) fn options(&self) -> &QueryOptions {
        &self.options
    }

    /// Runs it and gathers its rows.
    pub(crate) async fn run(mut self, stage: &Stage, login: &Login) -> Result<Rows> {
        if self.bound.sets.is_empty() {
            self.bound.sets.push(Vec::new());
        }
        let mut gathered = Gathered::default();
        let completion = stage
            .roles
            .query(login, &self.bound, &self.options, &mut gathered)
            .await?;
        Ok(gathered.rows(completion))
    }

    /// The SQLSTATE with which it is refused.
    pub(crate) async fn refusal(self, stage: &Stage, login: &Login) -> String {
        let error = self.run(stage, login).await.unwrap_err();
        match error.sqlstate() {
            Some(code) => code.to_owned(),
            None => format!("{error:?}"),
        }
    }

    /// The only value of its only row, as JSON.
    pub(crate) async fn value(self, stage: &Stage, login: &Login) -> String {
        let rows = self.run(stage, login).await.unwrap();
        assert_eq!(
            (rows.values.len(), rows.columns.len()),
            (1, 1),
            "{:?}",
            rows.values
        );
        rows.values[0][0].clone()
    }
}
