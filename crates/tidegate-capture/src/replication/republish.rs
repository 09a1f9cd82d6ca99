//! A way round a defect of older servers: what a publication was like before stays in use behind
//! a transaction that was open while it changed.
//!
//! Before 13.21, 14.18, 15.13, 16.9 and 17.5 the decoding of such a transaction remembers its
//! tables as they were when it began, and is not told of the change; what commits later is then
//! left out without a word (PostgreSQL 17.5, "Release Notes": invalidations for transactions that
//! are in progress).

use tidegate_changelog::{Demand, LogResult};
use tidegate_wire::version;

use super::survey::Survey;
use super::{EVERYTHING, INSERTS};
use crate::actor::Actor;

impl Actor {
    /// Once every transaction has ended that was open when a table was published: publishes it
    /// anew, which makes the decoding forget what those left behind. Nothing is missed meanwhile:
    /// every transaction sees the table either as it was published before or as it is now.
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
        let survey = Survey::of(self, demand.relation).await?;
        let there = [(EVERYTHING, survey.listed.0), (INSERTS, survey.listed.1)];
        for (publication, _) in there.iter().filter(|(_, there)| *there) {
            let name = &survey.name;
            self.run(&format!(
                "ALTER PUBLICATION \"{publication}\" DROP TABLE ONLY {name}; \
                 ALTER PUBLICATION \"{publication}\" ADD TABLE ONLY {name}"
            ))
            .await?;
        }
        Ok(())
    }
}
