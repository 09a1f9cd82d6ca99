//! What the log's ledger holds of the partitions of a captured table.

use tidegate_changelog::{LogError, LogPosition, LogResult};
use tidegate_sql::DatabaseName;

use super::ledger::Ledger;
use super::{EVERYTHING, Shared};
use crate::actor::Actor;
use crate::partitions::{Book, Entry};

/// Looks as the owner, whose publications they are, else as the administrator.
pub(super) async fn look(
    shared: &Shared,
    (database, relation): (&DatabaseName, u32),
    told: &[u32],
) -> LogResult<Option<LogPosition>> {
    if let Some(owner) = Actor::owner(&shared.logins, database).await? {
        match owner.look(&Comment, relation, told).await {
            Err(LogError::NotAllowed { .. }) => {}
            looked => return looked,
        }
    }
    let admin = Actor::admin(&shared.logins, database).await?;
    admin.look(&Comment, relation, told).await
}

/// The comment of the publication.
struct Comment;

impl Comment {
    async fn ledger(actor: &Actor) -> LogResult<Ledger> {
        let rows = actor.rows(LEDGER, &[]).await?;
        let comment: Option<&str> = rows.first().and_then(|row| row.get(0));
        Ok(Ledger::parse(comment.unwrap_or_default()))
    }
}

impl Book for Comment {
    async fn read(&self, actor: &Actor, relation: u32) -> LogResult<Option<Entry>> {
        let mut ledger = Self::ledger(actor).await?;
        let entry = ledger.0.remove(&relation);
        Ok(entry.map(|entry| Entry {
            changed: entry.changed,
            partitions: entry.partitions,
        }))
    }

    async fn now(&self, actor: &Actor) -> LogResult<LogPosition> {
        actor.now().await
    }

    async fn write(&self, actor: &Actor, relation: u32, seen: Entry) -> LogResult<()> {
        let mut ledger = Self::ledger(actor).await?;
        if let Some(entry) = ledger.0.get_mut(&relation) {
            entry.changed = seen.changed;
            entry.partitions = seen.partitions;
        }
        let comment = ledger.to_comment();
        let write = format!("COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'");
        actor.run(&write).await
    }
}

const LEDGER: &str = "\
    SELECT pg_catalog.obj_description(e.oid, 'pg_publication') \
    FROM pg_catalog.pg_publication e WHERE e.pubname = 'tidegate'";
