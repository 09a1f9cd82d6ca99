//! A session that reads the outbox.

use std::time::Duration;

use tidegate_changelog::{LogPosition, LogResult};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::{position, unreadable};
use crate::refusal;

/// How long a statement may take that looks at all changes of a large transaction.
pub(super) const STATEMENT: Duration = Duration::from_mins(10);

/// A session that reads.
pub(super) struct Reader {
    pub(super) client: Client,
}

impl Reader {
    pub(super) async fn rows(
        &self,
        query: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> LogResult<Vec<Row>> {
        let rows = self.client.query(query, values).await;
        rows.map_err(|error| refusal::of_statement(&error, STATEMENT))
    }

    /// Has every transaction that has committed get its place; returns where the next will be,
    /// and since which transaction writers have not stopped.
    pub(super) async fn advance(&self) -> LogResult<(LogPosition, String)> {
        let rows = self.rows(ADVANCE, &[]).await?;
        let row = rows.first().ok_or_else(|| unreadable("a position"))?;
        Ok((position(row.get(0)), row.get(1)))
    }
}

const ADVANCE: &str = "\
    SELECT tidegate_outbox.advance(), (SELECT renewed::text FROM tidegate_outbox.state)";
