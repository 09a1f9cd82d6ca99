//! Statements for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_sql::{BoundStatement, Login, Parameter, Result, Statement, Terms, TypeHint};

use super::{Gathered, Rows, Stage};

/// A statement being put together.
#[derive(Clone)]
pub struct Sql {
    pub bound: BoundStatement,
    terms: Terms,
}

impl Sql {
    /// The statement, with one empty parameter set.
    pub fn new(text: &str) -> Self {
        let statement = Arc::new(Statement::parse(text).unwrap());
        let count = statement.placeholders().len();
        let bound = BoundStatement {
            statement,
            hints: vec![None; count],
            formats: vec![None; count],
            sets: Vec::new(),
            listed: true,
        };
        Self {
            bound,
            terms: Terms::default(),
        }
    }

    /// One more set of values, each in JSON.
    pub fn set<const N: usize>(mut self, values: [&str; N]) -> Self {
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
    pub fn hint(mut self, name: &str) -> Self {
        self.bound.hints[0] = Some(TypeHint(name.to_owned()));
        self
    }

    pub fn within(mut self, time: Duration) -> Self {
        self.terms.deadline = Some(Instant::now() + time);
        self
    }

    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Runs it and gathers its rows.
    pub async fn run(mut self, stage: &Stage, login: &Login) -> Result<Rows> {
        if self.bound.sets.is_empty() {
            self.bound.sets.push(Vec::new());
        }
        let mut gathered = Gathered::default();
        let completion = stage
            .roles
            .query(login, &self.bound, &self.terms, &mut gathered)
            .await?;
        Ok(gathered.rows(completion))
    }

    /// The SQLSTATE with which it is refused.
    pub async fn refusal(self, stage: &Stage, login: &Login) -> String {
        let error = self.run(stage, login).await.unwrap_err();
        match error.sqlstate() {
            Some(state) => state.to_owned(),
            None => format!("{error:?}"),
        }
    }

    /// The only value of its only row, as JSON.
    pub async fn value(self, stage: &Stage, login: &Login) -> String {
        let rows = self.run(stage, login).await.unwrap();
        assert_eq!(
            (rows.rows.len(), rows.columns.len()),
            (1, 1),
            "{:?}",
            rows.rows
        );
        rows.rows[0][0].clone()
    }
}
