//! Statements, sinks and connections for tests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Flow, QueryOptions, Result, RowSink, Statement,
};
use tidegate_values::codec::ValueWriter;
use tidegate_values::{Column, Parameter, RawRow};

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

/// The rows of a result, values as JSON.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) columns: Vec<Column>,
    pub(crate) values: Vec<Vec<String>>,
    pub(crate) affected: Option<u64>,
}

/// Collects rows.
#[derive(Default)]
pub(crate) struct CollectedRows {
    columns: Option<Vec<Column>>,
    rows: Vec<Vec<String>>,
}

impl CollectedRows {
    pub(crate) fn rows(self, completion: Completion) -> Rows {
        let columns = self.columns.expect("columns come before the end");
        Rows {
            columns,
            values: self.rows,
            affected: completion.affected_rows,
        }
    }
}

impl RowSink for CollectedRows {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        assert!(self.columns.is_none(), "columns came twice");
        self.columns = Some(columns.to_vec());
        Ok(())
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        let columns = self.columns.as_ref().expect("columns come before rows");
        let mut values = Vec::new();
        for (column, value) in columns.iter().zip(row.values()) {
            let mut json = BytesMut::new();
            match value {
                Some(raw) => ValueWriter::new(column).json(raw, &mut json)?,
                None => json.extend_from_slice(b"null"),
            }
            values.push(String::from_utf8(json.to_vec()).unwrap());
        }
        self.rows.push(values);
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
