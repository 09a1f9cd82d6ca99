//! A session that reads the outbox.

use std::time::Duration;

use tidegate_changelog::{LogPosition, LogResult};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::{position, unreadable};
use crate::error;

/// The time limit of a statement that reads all changes of a large transaction.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_mins(10);

/// A session that reads the outbox.
pub(super) struct ReaderSession {
    pub(super) client: Client,
}

impl ReaderSession {
    pub(super) async fn rows(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> LogResult<Vec<Row>> {
        let rows = self.client.query(query, values).await;
        rows.map_err(|error| error::of_statement(&error, STATEMENT_TIMEOUT))
    }

    /// Assigns positions to the transactions that have committed. Returns the next position, and
    /// the id of a transaction. The outbox may lack changes of transactions with smaller ids,
    /// because the lease had expired or a trigger was missing. If the id changes while a stream
    /// runs, the stream must end.
    pub(super) async fn advance(&self) -> LogResult<(LogPosition, String)> {
        let rows = self.rows(ADVANCE, &[]).await?;
        let row = rows.first().ok_or_else(|| unreadable("a position"))?;
        Ok((position(row.get(0)), row.get(1)))
    }
}

const ADVANCE: &str = "\
    SELECT tidegate_outbox.advance(), (SELECT renewed::text FROM tidegate_outbox.state)";
