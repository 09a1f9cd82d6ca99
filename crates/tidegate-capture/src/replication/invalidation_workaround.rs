//! Works around a bug of older servers: if a transaction was open while a publication changed, the
//! old version of the publication remains in use after the transaction.
//!
//! Before 13.21, 14.18, 15.13, 16.9 and 17.5, decoding such a transaction fills a cache with the
//! publications as they were when the transaction started. A change of a publication does not
//! invalidate this cache. The changes of later transactions are then omitted silently (PostgreSQL
//! 17.5, "Release Notes": invalidations for transactions that are in progress).

use tidegate_changelog::{Demand, LogResult};
use tidegate_wire::version;

use super::table_info::TableInfo;
use super::{EVERYTHING, INSERTS};
use crate::capture_session::CaptureSession;

impl CaptureSession {
    /// Publishes the table a second time, on servers that have the bug. The caller must first wait
    /// until the transactions that were open at the first publication have ended. The second
    /// publication invalidates what PostgreSQL cached for these transactions. No change is missed,
    /// because the table is removed and added in one transaction.
    pub(super) async fn republish(&self, demand: &Demand) -> LogResult<()> {
        let version = "SELECT pg_catalog.current_setting('server_version_num')::int4";
        let rows = self.rows(version, &[]).await?;
        let version: i32 = rows.first().map(|row| row.get(0)).unwrap_or_default();
        if !version::keeps_old_publications(version.unsigned_abs()) {
            return Ok(());
        }
        self.begin().await?;
        let done = self.republish_within(demand).await;
        self.end(done).await
    }

    async fn republish_within(&self, demand: &Demand) -> LogResult<()> {
        let table = TableInfo::of(self, demand.relation).await?;
        let entry = table.metadata.0.get(&demand.relation);
        if entry.is_some_and(|entry| entry.since.is_some()) {
            // Another node has finished the capture, so it has published the table a second time.
            return Ok(());
        }
        let there = [(EVERYTHING, table.listed.0), (INSERTS, table.listed.1)];
        for (publication, _) in there.iter().filter(|(_, there)| *there) {
            let name = &table.name;
            self.run(&format!(
                "ALTER PUBLICATION \"{publication}\" DROP TABLE ONLY {name}; \
                 ALTER PUBLICATION \"{publication}\" ADD TABLE ONLY {name}"
            ))
            .await?;
        }
        Ok(())
    }
}
