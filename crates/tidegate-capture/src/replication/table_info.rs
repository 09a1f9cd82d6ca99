//! Inspects a table and its capture.

use tidegate_changelog::{Demand, LogError, LogResult};

use super::EVERYTHING;
use super::metadata::{CaptureMetadata, ReplicaIdentity};
use crate::capture_session::CaptureSession;
use crate::table_kind::check_kind;

/// A table with the state of its capture.
#[expect(clippy::struct_excessive_bools, reason = "they are separate facts")]
pub(super) struct TableInfo {
    /// The schema-qualified and quoted name.
    pub(super) name: String,
    pub(super) owner: String,
    /// The owner of the publications.
    pub(super) publisher: String,
    /// Whether this session may change both the publications and the table.
    pub(super) may_change: bool,
    partitioned: bool,
    has_primary_key: bool,
    /// Whether the table is in the publication `tidegate`, and whether it is in `tidegate_inserts`.
    pub(super) listed: (bool, bool),
    /// Whether the publication `tidegate` has the table with all its rows and columns.
    everything: bool,
    /// Whether the publication `tidegate_inserts` has the table with all its rows and columns.
    inserts: bool,
    /// Whether both publications have the options with which the service created them, or publish
    /// more operations.
    pub(super) unchanged: bool,
    /// Whether both publications include stored generated columns. Also true if the server cannot
    /// publish such columns.
    pub(super) publishes_generated: bool,
    /// Whether this session may change the publications.
    pub(super) may_publish: bool,
    pub(super) metadata: CaptureMetadata,
    /// The table itself, and its partitions that hold rows.
    pub(super) leaves: Vec<Leaf>,
}

/// The captured table, or one of its partitions that hold rows. Its replica identity decides which
/// values of old rows the change log has.
pub(super) struct Leaf {
    pub(super) oid: u32,
    /// The schema-qualified and quoted name.
    pub(super) name: String,
    /// The replica identity; `None` for FULL.
    pub(super) identity: Option<ReplicaIdentity>,
    /// Whether PostgreSQL accepts UPDATE and DELETE with this replica identity if they are
    /// published.
    identifies: bool,
    /// Whether the table has a virtual generated column, which no publication includes.
    is_virtual: bool,
}

impl TableInfo {
    /// The command that stores the metadata as the comment of a publication.
    pub(super) fn comment(&self) -> String {
        let comment = self.metadata.to_comment();
        format!("COMMENT ON PUBLICATION \"{EVERYTHING}\" IS '{comment}'")
    }

    /// Inspects a table.
    ///
    /// # Errors
    ///
    /// [`LogError::NoTable`] if the table does not exist, [`LogError::Unsupported`] if the relation
    /// cannot be captured, [`LogError::Gone`] if the publications do not exist.
    pub(super) async fn of(session: &CaptureSession, relation: u32) -> LogResult<Self> {
        let rows = session.rows(TABLE, &[&relation]).await?;
        let row = rows.first().ok_or(LogError::NoTable)?;
        check_kind(row.get(0), row.get(1), row.get(2))?;
        if row.get::<_, Option<&str>>(5).is_none() {
            return Err(LogError::Gone);
        }
        let comment: Option<&str> = row.get(9);
        let mut table = Self {
            name: row.get(3),
            owner: row.get(4),
            publisher: row.get(5),
            may_change: row.get(6),
            partitioned: row.get::<_, &str>(0) == "p",
            has_primary_key: row.get(10),
            listed: (row.get(12), row.get(13)),
            everything: row.get(7),
            inserts: row.get(8),
            unchanged: row.get(14),
            publishes_generated: row.get(11),
            may_publish: row.get(15),
            metadata: CaptureMetadata::parse(comment.unwrap_or_default()),
            leaves: Vec::new(),
        };
        for row in session.rows(LEAVES, &[&relation]).await? {
            table.leaves.push(Leaf {
                oid: row.get(0),
                name: row.get(1),
                identity: match row.get(2) {
                    "f" => None,
                    "n" => Some(ReplicaIdentity::Nothing),
                    "i" => Some(ReplicaIdentity::Index(row.get(3))),
                    _ => Some(ReplicaIdentity::Default),
                },
                identifies: row.get(4),
                is_virtual: row.get(5),
            });
        }
        Ok(table)
    }

    /// Returns the leaves whose replica identity must be changed to FULL, so that the change log
    /// has what `demand` asks for.
    ///
    /// # Errors
    ///
    /// [`LogError::Unsupported`] if UPDATE and DELETE of the published table, or of partitions that
    /// are created later, would fail.
    pub(super) fn to_raise(&self, demand: &Demand) -> LogResult<Vec<&Leaf>> {
        if !demand.changes {
            return Ok(Vec::new());
        }
        if self.partitioned && !self.has_primary_key {
            return Err(LogError::Unsupported(
                "only INSERTs of a partitioned table without a primary key can be captured: \
                 partitions that are created later would refuse UPDATE and DELETE"
                    .to_owned(),
            ));
        }
        let must = |leaf: &&Leaf| leaf.identity.is_some() && (demand.old_rows || !leaf.identifies);
        // With REPLICA IDENTITY FULL and a virtual generated column, PostgreSQL 18 refuses UPDATE
        // and DELETE: "Replica identity must not contain unpublished generated columns".
        let breaks = |leaf: &Leaf| leaf.is_virtual && (leaf.identity.is_none() || must(&leaf));
        if self.leaves.iter().any(breaks) {
            return Err(LogError::Unsupported(
                "whole old rows of a table with a virtual generated column cannot be captured: \
                 with REPLICA IDENTITY FULL it would refuse UPDATE and DELETE"
                    .to_owned(),
            ));
        }
        Ok(self.leaves.iter().filter(must).collect())
    }

    /// Whether the publications already meet the demand.
    pub(super) fn is_published(&self, demand: &Demand) -> bool {
        self.unchanged && (self.everything || (self.inserts && !demand.changes))
    }

    /// Whether PostgreSQL refuses UPDATE and DELETE, because they are published and the table has
    /// no usable replica identity.
    pub(super) fn refuses_writers(&self) -> bool {
        let refuses =
            |leaf: &Leaf| !leaf.identifies || (leaf.is_virtual && leaf.identity.is_none());
        self.listed.0 && self.leaves.iter().any(refuses)
    }
}

const TABLE: &str = "\
    SELECT c.relkind::text, c.relpersistence::text, c.relispartition, \
           pg_catalog.format('%I.%I', n.nspname, c.relname), \
           o.rolname::text, p.rolname::text, \
           pg_catalog.pg_has_role(c.relowner, 'USAGE') \
               AND pg_catalog.pg_has_role(e.pubowner, 'USAGE') \
               AND pg_catalog.pg_has_role(i.pubowner, 'USAGE'), \
           coalesce(le.whole, false), coalesce(li.whole, false), \
           pg_catalog.obj_description(e.oid, 'pg_publication'), \
           EXISTS (SELECT FROM pg_catalog.pg_index k WHERE k.indrelid = c.oid AND k.indisprimary), \
           coalesce(pg_catalog.to_jsonb(e) ->> 'pubgencols', 's') = 's' \
               AND coalesce(pg_catalog.to_jsonb(i) ->> 'pubgencols', 's') = 's', \
           le.whole IS NOT NULL, li.whole IS NOT NULL, \
           e.pubinsert AND e.pubupdate AND e.pubdelete AND e.pubtruncate AND e.pubviaroot \
               AND i.pubinsert AND i.pubtruncate AND i.pubviaroot, \
           pg_catalog.pg_has_role(e.pubowner, 'USAGE') \
               AND pg_catalog.pg_has_role(i.pubowner, 'USAGE') \
    FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    JOIN pg_catalog.pg_roles o ON o.oid = c.relowner \
    LEFT JOIN (pg_catalog.pg_publication e \
        JOIN pg_catalog.pg_publication i ON i.pubname = 'tidegate_inserts' \
        JOIN pg_catalog.pg_roles p ON p.oid = e.pubowner) ON e.pubname = 'tidegate' \
    LEFT JOIN LATERAL (SELECT pg_catalog.to_jsonb(r) ->> 'prqual' IS NULL \
                              AND pg_catalog.to_jsonb(r) ->> 'prattrs' IS NULL AS whole \
                       FROM pg_catalog.pg_publication_rel r \
                       WHERE r.prpubid = e.oid AND r.prrelid = c.oid) le ON true \
    LEFT JOIN LATERAL (SELECT pg_catalog.to_jsonb(r) ->> 'prqual' IS NULL \
                              AND pg_catalog.to_jsonb(r) ->> 'prattrs' IS NULL AS whole \
                       FROM pg_catalog.pg_publication_rel r \
                       WHERE r.prpubid = i.oid AND r.prrelid = c.oid) li ON true \
    WHERE c.oid = $1";

/// Selects the table itself, and the partitions below it that hold rows. A partitioned table holds
/// no rows, but its replica identity decides whether old rows are reported as whole.
const LEAVES: &str = "\
    SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname), c.relreplident::text, \
           coalesce((SELECT k.indexrelid FROM pg_catalog.pg_index k \
                     WHERE k.indrelid = c.oid AND k.indisreplident), 0), \
           CASE c.relreplident \
               WHEN 'f' THEN true \
               WHEN 'd' THEN EXISTS (SELECT FROM pg_catalog.pg_index k \
                                     WHERE k.indrelid = c.oid AND k.indisprimary \
                                     AND k.indisvalid AND k.indimmediate) \
               WHEN 'i' THEN EXISTS (SELECT FROM pg_catalog.pg_index k \
                                     WHERE k.indrelid = c.oid AND k.indisreplident) \
               ELSE false END, \
           EXISTS (SELECT FROM pg_catalog.pg_attribute a \
                   WHERE a.attrelid = c.oid AND a.attgenerated = 'v' AND NOT a.attisdropped) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid = $1 OR c.relkind = 'r' AND c.oid IN (\
        SELECT t.relid FROM pg_catalog.pg_partition_tree($1) t WHERE t.isleaf)";
