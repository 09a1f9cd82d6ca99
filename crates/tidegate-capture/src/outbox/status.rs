//! The state of a database's outbox, for operators.

use tidegate_changelog::LogResult;
use tidegate_sql::DatabaseName;

use super::readers::readers;
use super::{Outbox, schema};
use crate::capture_session::CaptureSession;

/// The state of a database's outbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// The tables whose changes are written to the outbox, qualified and quoted.
    pub tables: Vec<String>,
    /// The number of transactions whose changes are in the outbox.
    pub transactions: i64,
    /// The bytes of the changes in the outbox.
    pub bytes: i64,
    /// The bytes that the outbox takes on disk.
    pub disk: i64,
    /// The number of seconds for which triggers still write to the outbox if no node renews the
    /// lease.
    pub lease: i64,
    /// The sessions that read the outbox.
    pub readers: Vec<OutboxReader>,
}

/// A session that reads an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxReader {
    /// The id of the backend process that serves the session.
    pub process: i32,
    /// The address from which the session connects. `None` for a Unix socket, or if the
    /// administrator may not see it.
    pub address: Option<String>,
}

impl Outbox {
    /// Returns the outbox of a database; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the database does not exist, the administrator cannot log in, or the schema belongs to
    /// another owner.
    pub async fn status(&self, database: &DatabaseName) -> LogResult<Option<OutboxStatus>> {
        let admin = CaptureSession::admin(&self.shared.logins, database).await?;
        if !schema::exists(&admin).await? {
            return Ok(None);
        }
        let rows = admin.rows(STATUS, &[]).await?;
        let tables = admin.rows(TABLES, &[]).await?;
        let readers = admin.rows(READERS, &[]).await?;
        Ok(rows.first().map(|row| OutboxStatus {
            tables: tables.iter().map(|row| row.get(0)).collect(),
            transactions: row.get(0),
            bytes: row.get(1),
            disk: row.get(2),
            lease: row.get(3),
            readers: readers
                .iter()
                .map(|row| OutboxReader {
                    process: row.get(0),
                    address: row.get(1),
                })
                .collect(),
        }))
    }
}

const STATUS: &str = "\
    SELECT (SELECT pg_catalog.count(*) FROM tidegate_outbox.commit), \
           (SELECT coalesce(pg_catalog.sum(bytes), 0)::bigint FROM tidegate_outbox.commit), \
           (SELECT pg_catalog.sum(pg_catalog.pg_total_relation_size(c.oid))::bigint \
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
            WHERE n.nspname = 'tidegate_outbox' AND c.relkind = 'r'), \
           (SELECT greatest(0, last_value - extract(epoch FROM pg_catalog.clock_timestamp()))::bigint \
            FROM tidegate_outbox.lease)";

const TABLES: &str = "\
    SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) \
    FROM pg_catalog.pg_trigger t \
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE t.tgfoid = 'tidegate_outbox.note()'::pg_catalog.regprocedure AND t.tgparentid = 0 \
    ORDER BY 1";

const READERS: &str = concat!(
    "SELECT r.pid, pg_catalog.host(r.client_addr) FROM (",
    readers!(),
    ") r ORDER BY 1"
);
