//! Statements.

use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "roles")]
use tidegate_postgres::UserExecutor;
use tidegate_sql::{Author, BoundStatement, QueryOptions, Statement, TypeHint};
#[cfg(feature = "roles")]
use tidegate_sql::{Login, Result};
use tidegate_values::Parameter;

#[cfg(feature = "roles")]
use crate::rows::{CollectedRows, Rows};

/// A builder of statements.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The statement with its values.
    pub bound: BoundStatement,
    options: QueryOptions,
}

impl Sql {
    /// Starts a statement with this text, and without a parameter set.
    ///
    /// # Panics
    ///
    /// If the text is not a statement.
    pub fn new(text: &str) -> Self {
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

    /// Adds a parameter set with these values, each as JSON text.
    #[must_use]
    pub fn set<const N: usize>(mut self, values: [&str; N]) -> Self {
        let value = |json: &str| match json {
            "null" => Parameter::Null,
            json => Parameter::Json(json.into()),
        };
        let set = values.iter().map(|json| value(json)).collect();
        self.bound.sets.push(set);
        self
    }

    /// Adds an empty parameter set if there is none, because a statement without placeholders also
    /// needs one in order to run.
    #[must_use]
    pub fn with_a_set(self) -> Self {
        if self.bound.sets.is_empty() {
            self.set([])
        } else {
            self
        }
    }

    /// Sets the type hint of the first placeholder.
    ///
    /// # Panics
    ///
    /// If the statement has none.
    #[must_use]
    pub fn hint(mut self, name: &str) -> Self {
        self.bound.hints[0] = Some(TypeHint(name.to_owned()));
        self
    }

    /// Sets the deadline, as the time from now.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.options.deadline = Some(Instant::now() + time);
        self
    }

    /// Sets the author of the text.
    #[must_use]
    pub fn by(mut self, author: Author) -> Self {
        self.options.author = author;
        self
    }

    /// The options with which the statement runs.
    pub fn options(&self) -> &QueryOptions {
        &self.options
    }
}

/// A fixture that has an executor for roles.
#[cfg(feature = "roles")]
pub trait HasUserExecutor {
    /// The executor.
    fn user_executor(&self) -> &UserExecutor;
}

#[cfg(feature = "roles")]
impl<F: HasUserExecutor> HasUserExecutor for Arc<F> {
    fn user_executor(&self) -> &UserExecutor {
        (**self).user_executor()
    }
}

#[cfg(feature = "roles")]
impl<F: HasUserExecutor> HasUserExecutor for &F {
    fn user_executor(&self) -> &UserExecutor {
        (**self).user_executor()
    }
}

#[cfg(feature = "roles")]
impl Sql {
    /// Runs the statement and collects its rows.
    ///
    /// # Errors
    ///
    /// Those of the executor.
    pub async fn run(self, fixture: &impl HasUserExecutor, login: &Login) -> Result<Rows> {
        let (sql, mut sink) = (self.with_a_set(), CollectedRows::default());
        let users = fixture.user_executor();
        let ran = users.query(login, &sql.bound, &sql.options, &mut sink);
        let completion = ran.await?;
        Ok(sink.rows(completion))
    }

    /// The SQLSTATE with which PostgreSQL refuses the statement.
    ///
    /// # Panics
    ///
    /// If the statement succeeds.
    pub async fn refusal(self, fixture: &impl HasUserExecutor, login: &Login) -> String {
        let error = self.run(fixture, login).await.unwrap_err();
        let code = error.sqlstate().map(str::to_owned);
        code.unwrap_or_else(|| format!("{error:?}"))
    }

    /// The only value of the statement's only row, as JSON.
    ///
    /// # Panics
    ///
    /// If the statement fails, or has another number of values.
    pub async fn value(self, fixture: &impl HasUserExecutor, login: &Login) -> String {
        let rows = self.run(fixture, login).await.unwrap();
        let size = (rows.values.len(), rows.columns.len());
        assert_eq!(size, (1, 1), "{:?}", rows.values);
        rows.values[0][0].clone()
    }
}
