//! Stores the partitions of captured tables in the publication's comment.

use tidegate_changelog::{LogError, LogPosition, LogResult};
use tidegate_sql::DatabaseName;

use super::metadata::CaptureMetadata;
use super::{EVERYTHING, Shared};
use crate::capture_session::CaptureSession;
use crate::partitions::{PartitionRecord, PartitionStore};

/// Checks the partitions of a table. Uses a session of the database's owner, who usually owns the
/// publications. If the owner lacks a privilege, the check runs again in a session of the
/// administrator.
pub(super) async fn check(
    shared: &Shared,
    (database, relation): (&DatabaseName, u32),
    reported: &[u32],
) -> LogResult<Option<LogPosition>> {
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await? {
        match owner.check(&Comment, relation, reported).await {
            Err(LogError::NotAllowed { .. }) => {}
            checked => return checked,
        }
    }
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    admin.check(&Comment, relation, reported).await
}

/// Stores the partitions of captured tables in the comment of the publication [`EVERYTHING`].
struct Comment;

impl Comment {
    async fn metadata(session: &CaptureSession) -> LogResult<CaptureMetadata> {
        let rows = session.rows(METADATA, &[]).await?;
        let comment: Option<&str> = rows.first().and_then(|row| row.get(0));
        Ok(CaptureMetadata::parse(comment.unwrap_or_default()))
    }
}

impl PartitionStore for Comment {
    async fn read(
        &self,
        session: &CaptureSession,
        relation: u32,
    ) -> LogResult<Option<PartitionRecord>> {
        let mut metadata = Self::metadata(session).await?;
        let entry = metadata.0.remove(&relation);
        Ok(entry.map(|entry| PartitionRecord {
            changed: entry.changed,
            partitions: entry.partitions,
        }))
    }

    async fn now(&self, session: &CaptureSession) -> LogResult<LogPosition> {
        session.now().await
    }

    async fn write(
        &self,
        session: &CaptureSession,
        relation: u32,
        seen: PartitionRecord,
    ) -> LogResult<()> {
        let mut metadata = Self::metadata(session).await?;
        if let Some(entry) = metadata.0.get_mut(&relation) {
            entry.changed = seen.changed;
            entry.partitions = seen.partitions;
        }
        let comment = metadata.to_comment();
        let write = format!("COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'");
        session.run(&write).await
    }
}

const METADATA: &str = "\
    SELECT pg_catalog.obj_description(e.oid, 'pg_publication') \
    FROM pg_catalog.pg_publication e WHERE e.pubname = 'tidegate'";
