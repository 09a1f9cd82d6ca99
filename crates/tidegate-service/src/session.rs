//! A service connection that is checked out.

use std::time::Duration;

use deadpool::managed::Object;
use futures_util::TryStreamExt as _;
use tidegate_sql::statement::Kind;
use tidegate_sql::{BoundStatement, Completion, Description, Error, Flow, Mode, Result, RowSink};
use tidegate_values::RawRow;
use tidegate_wire::Backend;
use tokio::sync::OwnedSemaphorePermit;
use tracing::debug;

use super::error;
use super::service_manager::ServiceManager;
use super::tls::Tls;
use super::value::{self, TextParameter};

/// Terminates the backend with the process id $1 and the role $2; see
/// [`ServiceSession::terminate`].
pub(super) const TERMINATE: &str = "SELECT pg_catalog.pg_terminate_backend(a.pid) \
    FROM pg_catalog.pg_stat_activity a WHERE a.pid OPERATOR(pg_catalog.=) $1 \
    AND (a.usename OPERATOR(pg_catalog.=) $2::pg_catalog.text::pg_catalog.name \
    AND a.usename OPERATOR(pg_catalog.<>) current_user \
    OR a.usename IS NULL AND a.backend_type OPERATOR(pg_catalog.=) 'client backend')";
/// The time limit of a cancel request.
const CANCEL: Duration = Duration::from_secs(5);

/// A service connection that is checked out. Dropping it without calling [`Self::release`] cancels
/// the running statement and closes the connection, because the state of the connection is unknown.
pub(super) struct ServiceSession {
    object: Option<Object<ServiceManager>>,
    tls: Tls,
    /// The permits that the connection holds while it is checked out.
    permits: [Option<OwnedSemaphorePermit>; 2],
}

impl ServiceSession {
    pub(super) fn new(object: Object<ServiceManager>, tls: Tls) -> Self {
        Self {
            object: Some(object),
            tls,
            permits: [None, None],
        }
    }

    /// Holds permits while the connection is in use.
    pub(super) fn with_permits(mut self, permits: [Option<OwnedSemaphorePermit>; 2]) -> Self {
        self.permits = permits;
        self
    }

    /// Returns the connection to its pool. No statement may be running, and no transaction may be
    /// open.
    pub(super) fn release(mut self) {
        drop(self.object.take());
    }

    fn object(&self) -> &Object<ServiceManager> {
        self.object
            .as_ref()
            .expect("a session has its connection until it is dropped")
    }

    /// Runs an internal command without parameters and rows.
    pub(super) async fn command(&self, text: &str) -> Result<()> {
        let done = self.object().batch_execute(text).await;
        done.map_err(|error| self.failed(&error, None))
    }

    /// Terminates a backend. Returns whether the backend existed. The process id may have been
    /// reused, so the process is terminated only if it has the role of `backend` or its role was
    /// dropped. Connections of the administrator are never terminated.
    pub(super) async fn terminate(&self, backend: &Backend) -> Result<bool> {
        let ended = self
            .object()
            .query(TERMINATE, &[&backend.process_id, &backend.role.as_str()])
            .await;
        let ended = ended.map_err(|error| self.failed(&error, None))?;
        Ok(!ended.is_empty())
    }

    pub(super) async fn begin(&self, mode: Mode) -> Result<()> {
        self.command(match mode {
            Mode::ReadWrite => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            Mode::Snapshot => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        })
        .await
    }

    /// Runs a statement with all its parameter sets. Runs it in the open transaction if there is
    /// one.
    pub(super) async fn run(
        &self,
        bound: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let mut statement = self.prepare(bound).await?;
        let mut affected = 0;
        let mut buffer = Vec::new();
        for set in 0..bound.sets.len() {
            let mut values = TextParameter::of(bound, set, statement.params())?;
            let mut started = self.object().query_raw(&statement, values).await;
            if set == 0 {
                if started.as_ref().is_err_and(error::is_stale) {
                    self.object().statement_cache.clear();
                    statement = self.prepare(bound).await?;
                    values = TextParameter::of(bound, set, statement.params())?;
                    started = self.object().query_raw(&statement, values).await;
                }
                if started.is_ok() {
                    sink.columns(&value::columns(&statement))?;
                }
            }
            let rows = started.map_err(|error| self.failed(&error, Some(bound)))?;
            affected += self.push(rows, bound, &mut buffer, sink).await?;
        }
        let writes = bound.statement.kind() != Kind::Read;
        Ok(Completion {
            affected_rows: writes.then_some(affected),
        })
    }

    async fn prepare(&self, bound: &BoundStatement) -> Result<tokio_postgres::Statement> {
        if bound.hints.iter().any(Option::is_some) {
            return Err(Error::internal(
                "statements of the service take no type hints",
            ));
        }
        let prepared = self.object().prepare_cached(bound.statement.text()).await;
        prepared.map_err(|error| self.failed(&error, Some(bound)))
    }

    /// Pushes the rows into the sink. Returns the number of affected rows that PostgreSQL reports.
    /// `buffer` is reused for each row.
    async fn push(
        &self,
        rows: tokio_postgres::RowStream,
        bound: &BoundStatement,
        buffer: &mut Vec<u8>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let mut rows = std::pin::pin!(rows);
        loop {
            let next = rows.try_next().await;
            let next = next.map_err(|error| self.failed(&error, Some(bound)))?;
            let Some(row) = next else {
                return Ok(rows.rows_affected().unwrap_or(0));
            };
            value::write_row(&row, buffer)?;
            let unreadable = || Error::internal("a row does not add up");
            let row = RawRow::new(row.len(), buffer).ok_or_else(unreadable)?;
            if sink.row(row)? == Flow::Wait {
                sink.ready().await?;
            }
        }
    }

    /// Converts the error of a failed statement. If a server in recovery refused a write, the
    /// result is an outage.
    fn failed(&self, error: &tokio_postgres::Error, bound: Option<&BoundStatement>) -> Error {
        let of_standby = error::of_standby(error).filter(|_| self.object().in_recovery);
        of_standby.unwrap_or_else(|| error::of_statement(error, bound))
    }

    /// Lets PostgreSQL parse and describe a statement.
    pub(super) async fn describe(&self, bound: &BoundStatement) -> Result<Description> {
        let statement = self.prepare(bound).await?;
        Ok(Description {
            parameters: statement.params().to_vec(),
            columns: value::columns(&statement),
        })
    }
}

impl Drop for ServiceSession {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else {
            return;
        };
        let token = object.cancel_token();
        let tls = self.tls.clone();
        let client = Object::take(object);
        let permits = std::mem::take(&mut self.permits);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let cancelled = tokio::time::timeout(CANCEL, token.cancel_query(tls)).await;
            debug!(?cancelled, "closed a service connection that was in use");
            drop((client, permits));
        });
    }
}
