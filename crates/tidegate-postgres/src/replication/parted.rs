//! Rows that come or go with the partitions of a captured table.

use tidegate_sql::DatabaseName;
use tidegate_sql::log::{LogError, LogPosition, LogResult};

use super::ledger::Ledger;
use super::{EVERYTHING, Shared};
use crate::actor::Actor;

/// See [`tidegate_sql::log::ChangeLog::partitions`].
pub(super) async fn look(
    shared: &Shared,
    database: &DatabaseName,
    relation: u32,
    told: &[u32],
) -> LogResult<Option<LogPosition>> {
    if let Some(owner) = Actor::owner(&shared.logins, database).await? {
        match owner.look(relation, told).await {
            Err(LogError::NotAllowed { .. }) => {}
            looked => return looked,
        }
    }
    let admin = Actor::admin(&shared.logins, database).await?;
    admin.look(relation, told).await
}

impl Actor {
    async fn look(&self, relation: u32, told: &[u32]) -> LogResult<Option<LogPosition>> {
        self.begin().await?;
        let looked = self.look_within(relation, told).await;
        self.end(looked).await
    }

    async fn look_within(&self, relation: u32, told: &[u32]) -> LogResult<Option<LogPosition>> {
        let rows = self.rows(LEDGER, &[]).await?;
        let comment: Option<&str> = rows.first().and_then(|row| row.get(0));
        let mut ledger = Ledger::parse(comment.unwrap_or_default());
        let Some(entry) = ledger.0.get_mut(&relation) else {
            return Ok(None);
        };
        let Some(seen) = self.partitions(relation).await? else {
            return Ok(None);
        };
        if entry.partitions.as_ref() == Some(&seen.partitions) {
            return Ok(entry.changed);
        }
        if let Some(before) = &entry.partitions
            && self.moved(before, &seen, told).await?
        {
            entry.changed = Some(self.now().await?);
        }
        entry.partitions = Some(seen.partitions);
        let changed = entry.changed;
        let comment = ledger.to_comment();
        self.run(&format!(
            "COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'"
        ))
        .await?;
        Ok(changed)
    }
}

const LEDGER: &str = "\
    SELECT pg_catalog.obj_description(e.oid, 'pg_publication') \
    FROM pg_catalog.pg_publication e WHERE e.pubname = 'tidegate'";
