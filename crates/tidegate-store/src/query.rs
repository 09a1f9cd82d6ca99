//! Statements on the control schema, their values, and the control database, which runs them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tidegate_identity::{SessionId, Timestamp};
use tidegate_oauth::Scopes;
use tidegate_sql::{
    BoundStatement, Executor, Mode, Principal, QueryOptions, Statement, Transaction,
};
use tidegate_values::Parameter;

use crate::error::{Error, Result};
use crate::instant;
use crate::row::{self, Read, RowCollector};

/// How long a statement on the control schema may take, including the wait for a connection.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A statement whose text is parsed on first use. Its placeholders have names (`:name`). Values are
/// bound in the order in which the names first occur in the text.
pub(crate) struct Query {
    text: &'static str,
    statement: OnceLock<Arc<Statement>>,
}

impl Query {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self {
            text,
            statement: OnceLock::new(),
        }
    }

    fn bind(&self, values: &[Argument<'_>]) -> Result<BoundStatement> {
        let statement = if let Some(statement) = self.statement.get() {
            statement.clone()
        } else {
            let read = Statement::parse(self.text).map_err(Error::failed)?;
            self.statement.get_or_init(|| Arc::new(read)).clone()
        };
        bind(statement, values.iter().map(Value::parameter).collect())
    }
}

/// Binds `values` to the placeholders of a statement, in the order of the placeholders.
pub(crate) fn bind(statement: Arc<Statement>, values: Vec<Parameter>) -> Result<BoundStatement> {
    let count = statement.placeholders().len();
    if count != values.len() {
        return Err(Error::failed(format!(
            "a statement of {count} placeholders got {} values",
            values.len()
        )));
    }
    Ok(BoundStatement::with_values(statement, values))
}

/// A value for a placeholder.
pub(crate) trait Value {
    fn parameter(&self) -> Parameter;
}

impl Value for str {
    fn parameter(&self) -> Parameter {
        // PostgreSQL's `text` cannot contain a zero byte, so it is replaced by U+FFFD. Otherwise
        // the look-up of a name with a zero byte would fail.
        Parameter::Text(self.replace('\0', "\u{fffd}").into())
    }
}

impl Value for String {
    fn parameter(&self) -> Parameter {
        self.as_str().parameter()
    }
}

impl Value for bool {
    fn parameter(&self) -> Parameter {
        Parameter::Text(if *self { "t" } else { "f" }.into())
    }
}

impl Value for i64 {
    fn parameter(&self) -> Parameter {
        Parameter::Text(self.to_string().into())
    }
}

impl Value for u64 {
    fn parameter(&self) -> Parameter {
        Parameter::Text(self.to_string().into())
    }
}

impl Value for Timestamp {
    fn parameter(&self) -> Parameter {
        Parameter::Text(instant::text(*self).into())
    }
}

impl Value for Duration {
    /// A duration is written in whole milliseconds.
    fn parameter(&self) -> Parameter {
        Parameter::Text(self.as_millis().to_string().into())
    }
}

impl Value for Scopes {
    /// The names of the scopes, with spaces between them.
    fn parameter(&self) -> Parameter {
        Parameter::Text(self.to_string().into())
    }
}

impl Value for SessionId {
    fn parameter(&self) -> Parameter {
        Parameter::Text(hex("", self.as_bytes()).into())
    }
}

impl Value for [u8] {
    fn parameter(&self) -> Parameter {
        Parameter::Text(hex("\\x", self).into())
    }
}

impl<T: Value + ?Sized> Value for &T {
    fn parameter(&self) -> Parameter {
        (**self).parameter()
    }
}

impl<T: Value> Value for Option<T> {
    fn parameter(&self) -> Parameter {
        self.as_ref().map_or(Parameter::Null, Value::parameter)
    }
}

/// A reference to a value for a placeholder.
pub(crate) type Argument<'a> = &'a (dyn Value + Sync);

pub(crate) fn hex(prefix: &str, bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(prefix.len() + 2 * bytes.len());
    text.push_str(prefix);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The control database. The executor runs the statements on it.
#[derive(Clone)]
pub(crate) struct Database(Arc<dyn Executor>);

impl Database {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        Self(executor)
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn rows<T: Send>(
        &self,
        query: &Query,
        values: &[Argument<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let bound = query.bind(values)?;
        let mut collector = RowCollector::new(read);
        self.0
            .query(&Principal::Control, &bound, &options(), &mut collector)
            .await?;
        Ok(collector.found)
    }

    /// Runs a statement and returns its last row, if there is one.
    pub(crate) async fn row<T: Send>(
        &self,
        query: &Query,
        values: &[Argument<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(query, values, read).await?.pop())
    }

    /// Runs a statement and returns the number of written rows.
    pub(crate) async fn execute(&self, query: &Query, values: &[Argument<'_>]) -> Result<u64> {
        let bound = query.bind(values)?;
        let mut nothing = RowCollector::new(row::nothing);
        let completion = self
            .0
            .query(&Principal::Control, &bound, &options(), &mut nothing)
            .await?;
        Ok(completion.affected_rows.unwrap_or(0))
    }

    /// Begins a transaction, which is rolled back unless it is committed.
    pub(crate) async fn begin(&self) -> Result<OpenTransaction> {
        let options = options();
        let begun = self.0.begin(&Principal::Control, Mode::ReadWrite, &options);
        Ok(OpenTransaction(begun.await?))
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Database")
    }
}

/// An open transaction on the control database.
pub(crate) struct OpenTransaction(pub(crate) Box<dyn Transaction>);

impl OpenTransaction {
    /// Runs a statement and returns the number of written rows.
    pub(crate) async fn execute(&mut self, query: &Query, values: &[Argument<'_>]) -> Result<u64> {
        let bound = query.bind(values)?;
        let mut nothing = RowCollector::new(row::nothing);
        let completion = self.0.query(&bound, &mut nothing).await?;
        Ok(completion.affected_rows.unwrap_or(0))
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn rows<T: Send>(
        &mut self,
        query: &Query,
        values: &[Argument<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let bound = query.bind(values)?;
        let mut collector = RowCollector::new(read);
        self.0.query(&bound, &mut collector).await?;
        Ok(collector.found)
    }

    /// Runs a statement and returns its last row, if there is one.
    pub(crate) async fn row<T: Send>(
        &mut self,
        query: &Query,
        values: &[Argument<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(query, values, read).await?.pop())
    }

    pub(crate) async fn commit(self) -> Result<()> {
        Ok(self.0.commit().await?)
    }
}

fn options() -> QueryOptions {
    QueryOptions {
        deadline: Some(Instant::now() + TIMEOUT),
        ..QueryOptions::default()
    }
}
