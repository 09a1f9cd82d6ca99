//! Removes tables from the capture.

use std::fmt::Write as _;

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::sleep;

use super::metadata::{CaptureMetadata, ReplicaIdentity, TableMetadata};
use super::{EVERYTHING, INSERTS, Shared, lock_backoff};
use crate::capture_session::CaptureSession;

/// The maximum number of attempts to lock the tables.
const ATTEMPTS: usize = 10;

/// Ends captures; see [`tidegate_changelog::ChangeLog::release`]. Does nothing while another node
/// reads the log, because that node's subscribers may need other tables.
pub(super) async fn release(
    shared: &Shared,
    database: &DatabaseName,
    kept: &[u32],
) -> LogResult<()> {
    // The owner releases the tables that it may change. Then the administrator releases the others.
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await? {
        owner.release(kept).await?;
    }
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    admin.release(kept).await
}

impl CaptureSession {
    /// Releases all tables except `kept`. Retries if tables are locked.
    async fn release(&self, kept: &[u32]) -> LogResult<()> {
        let mut attempts = 1..ATTEMPTS;
        loop {
            self.begin().await?;
            let released = self.release_within(kept).await;
            let released = self.end(released).await;
            let again = matches!(released, Err(LogError::TimedOut { .. }));
            if !again || attempts.next().is_none() {
                return released;
            }
            sleep(lock_backoff::ATTEMPT.0 * lock_backoff::PAUSE_FACTOR).await;
        }
    }

    async fn release_within(&self, kept: &[u32]) -> LogResult<()> {
        let rows = self.rows(CAPTURED, &[&kept]).await?;
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let comment: Option<&str> = first.get(4);
        let mut metadata = CaptureMetadata::parse(comment.unwrap_or_default());
        let mut commands = String::new();
        let timeout = lock_backoff::ATTEMPT.0.as_millis();
        let mut identities = format!("; SET LOCAL lock_timeout = {timeout}; ");
        for row in &rows {
            let (oid, name): (u32, &str) = (row.get(0), row.get(1));
            for (column, publication) in [(2, EVERYTHING), (3, INSERTS)] {
                if row.get(column) {
                    write!(
                        commands,
                        "ALTER PUBLICATION \"{publication}\" DROP TABLE ONLY {name}; "
                    )
                    .expect("a String takes everything");
                }
            }
            let entry = metadata.0.remove(&oid).unwrap_or_default();
            self.push_restore_command(&entry, name, &mut identities)
                .await?;
        }
        let comment = metadata.to_comment();
        write!(
            commands,
            "COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'"
        )
        .expect("a String takes everything");
        commands.push_str(&identities);
        self.run(&commands).await
    }

    /// Appends the command that restores a table's replica identity, if the service raised it.
    pub(super) async fn push_restore_command(
        &self,
        entry: &TableMetadata,
        name: &str,
        commands: &mut String,
    ) -> LogResult<()> {
        let identity = match entry.before {
            None => return Ok(()),
            Some(ReplicaIdentity::Default) => "DEFAULT".to_owned(),
            Some(ReplicaIdentity::Nothing) => "NOTHING".to_owned(),
            Some(ReplicaIdentity::Index(index)) => {
                let rows = self.rows(INDEX, &[&index]).await?;
                match rows.first() {
                    Some(row) => format!("USING INDEX {}", row.get::<_, &str>(0)),
                    None => "DEFAULT".to_owned(),
                }
            }
        };
        write!(
            commands,
            "ALTER TABLE ONLY {name} REPLICA IDENTITY {identity}; "
        )
        .expect("a String takes everything");
        Ok(())
    }
}

const INDEX: &str = "SELECT pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_class c \
                     WHERE c.oid = $1 AND c.relkind = 'i'";

/// Selects the tables that are in one of the two publications, or have a line in the capture
/// metadata, which is the comment of the publication `tidegate`. Leaves out the tables with the
/// OIDs `$1` and their partitions, and each table for which this session lacks the rights of the
/// owner. Selects nothing while more than one stream is open, or if this session lacks the rights
/// of the publications' owners. The columns: OID, name, whether `tidegate` contains the table,
/// whether `tidegate_inserts` contains it, and the metadata.
const CAPTURED: &str = "\
    WITH publication AS ( \
        SELECT e.oid AS everything, i.oid AS inserts, \
               pg_catalog.obj_description(e.oid, 'pg_publication') AS comment \
        FROM pg_catalog.pg_publication e, pg_catalog.pg_publication i \
        WHERE e.pubname = 'tidegate' AND i.pubname = 'tidegate_inserts' \
        AND pg_catalog.pg_has_role(e.pubowner, 'USAGE') \
        AND pg_catalog.pg_has_role(i.pubowner, 'USAGE') \
        AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots s \
             JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
             WHERE pg_catalog.starts_with(s.slot_name::text, 'tidegate_' || d.oid || '_') \
             OR s.slot_name = 'tidegate_' || d.oid AND s.active) < 2) \
    SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname), \
           EXISTS (SELECT FROM pg_catalog.pg_publication_rel r \
                   WHERE r.prpubid = p.everything AND r.prrelid = c.oid), \
           EXISTS (SELECT FROM pg_catalog.pg_publication_rel r \
                   WHERE r.prpubid = p.inserts AND r.prrelid = c.oid), \
           p.comment \
    FROM publication p \
    CROSS JOIN pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p') AND pg_catalog.pg_has_role(c.relowner, 'USAGE') \
    AND (EXISTS (SELECT FROM pg_catalog.pg_publication_rel r WHERE r.prrelid = c.oid \
                 AND r.prpubid IN (p.everything, p.inserts)) \
         OR p.comment ~ ('(^|\\n)' || c.oid || ' ')) \
    AND NOT c.oid = ANY ($1) \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_partition_ancestors(c.oid) a WHERE a.relid = ANY ($1))";
