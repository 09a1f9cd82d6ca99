//! The objects that logical decoding of changes (the *feed*) uses in a cluster and its databases.
//! Operators see them in `tidegate feed`.

use tidegate_changelog::{LogPosition, LogResult};
use tidegate_sql::DatabaseName;

use super::metadata::CaptureMetadata;
use super::{Replication, Shared};
use crate::capture_session::CaptureSession;

/// The settings of the cluster that affect the log.
const SETTINGS: [&str; 5] = [
    "wal_level",
    "max_replication_slots",
    "max_wal_senders",
    "max_slot_wal_keep_size",
    // Exists from PostgreSQL 18 on.
    "idle_replication_slot_timeout",
];

/// The settings and slots of a cluster that matter to the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterCapture {
    /// The relevant settings, as PostgreSQL shows them.
    pub settings: Vec<(String, String)>,
    /// The number of replication slots in use, including those of other programs.
    pub slots_used: i64,
    /// The number of WAL senders in use, including those of other programs.
    pub senders_used: i64,
    /// The replication slots of this service.
    pub slots: Vec<SlotStatus>,
}

/// A replication slot (PostgreSQL, "`pg_replication_slots`").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotStatus {
    /// The database of the slot.
    pub database: DatabaseName,
    /// The name of the slot: `tidegate_<oid>` for the retention slot, followed by `_<pid>` for a
    /// stream.
    pub name: String,
    /// The id of the process that uses the slot; `None` if it is not in use.
    pub active: Option<i32>,
    /// The position from which the log is kept for the slot; `None` if no log is kept.
    pub restart: Option<LogPosition>,
    /// The position up to which the reader of the slot has confirmed the log; `None` if it has
    /// confirmed nothing.
    pub confirmed: Option<LogPosition>,
    /// The bytes of log that are kept for the slot; `None` if no log is kept.
    pub retained: Option<i64>,
    /// The column `wal_status`: `reserved`, `extended`, `unreserved` or `lost`.
    pub wal_status: Option<String>,
    /// The number of bytes that can be written before the slot may be lost; `None` without a limit.
    pub safe_size: Option<i64>,
}

/// The feed's objects in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseCapture {
    /// The publications of this service.
    pub publications: Vec<PublicationStatus>,
    /// The tables whose replica identity this service raised to FULL.
    pub raised: Vec<RaisedIdentity>,
}

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationStatus {
    /// The name of the publication.
    pub name: String,
    /// The owner of the publication.
    pub owner: String,
    /// The tables of the publication, qualified and quoted.
    pub tables: Vec<String>,
}

/// A table whose replica identity this service raised to FULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaisedIdentity {
    /// The table, qualified and quoted.
    pub table: String,
    /// The SQL that restores the previous replica identity.
    pub sql: String,
}

impl Replication {
    /// Returns the feed's objects in the cluster.
    ///
    /// # Errors
    ///
    /// If the administrator cannot log in or read the catalog.
    pub async fn cluster(&self) -> LogResult<ClusterCapture> {
        let admin = CaptureSession::admin(
            &self.shared.logins,
            &self.shared.logins.admin.admin_database,
        )
        .await?;
        let names: &[&str] = &SETTINGS;
        let settings = admin.rows(VALUES, &[&names]).await?;
        let used = admin.rows(USED, &[]).await?;
        let used = |column| used.first().map_or(0, |row| row.get(column));
        Ok(ClusterCapture {
            settings: settings
                .iter()
                .map(|row| (row.get(0), row.get(1)))
                .collect(),
            slots_used: used(0),
            senders_used: used(1),
            slots: admin.rows(SLOTS, &[]).await?.iter().map(slot).collect(),
        })
    }

    /// Returns the feed's objects in a database.
    ///
    /// # Errors
    ///
    /// If the database does not exist, or the administrator cannot log in or read the catalog.
    pub async fn captured(&self, database: &DatabaseName) -> LogResult<DatabaseCapture> {
        captured(&self.shared, database).await
    }
}

/// Does the work of [`Replication::captured`].
pub(super) async fn captured(
    shared: &Shared,
    database: &DatabaseName,
) -> LogResult<DatabaseCapture> {
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    let mut capture = DatabaseCapture::default();
    let mut metadata = CaptureMetadata::default();
    for row in admin.rows(PUBLICATIONS, &[]).await? {
        if let Some(comment) = row.get::<_, Option<&str>>(3) {
            metadata = CaptureMetadata::parse(comment);
        }
        capture.publications.push(PublicationStatus {
            name: row.get(0),
            owner: row.get(1),
            tables: row.get(2),
        });
    }
    let raised: Vec<u32> = metadata
        .0
        .iter()
        .filter_map(|(table, entry)| entry.before.map(|_| *table))
        .collect();
    for row in admin.rows(RAISED, &[&raised]).await? {
        let (table, name): (u32, &str) = (row.get(0), row.get(1));
        let entry = metadata.0.get(&table).cloned().unwrap_or_default();
        let mut sql = String::new();
        admin.push_restore_command(&entry, name, &mut sql).await?;
        capture.raised.push(RaisedIdentity {
            table: name.to_owned(),
            sql: sql.trim_end().to_owned(),
        });
    }
    Ok(capture)
}

fn slot(row: &tokio_postgres::Row) -> SlotStatus {
    let position = |column| {
        row.get::<_, Option<&str>>(column)
            .and_then(|text| text.parse().ok())
    };
    SlotStatus {
        database: DatabaseName::new(row.get::<_, &str>(0)),
        name: row.get(1),
        active: row.get(2),
        restart: position(3),
        confirmed: position(4),
        retained: row.get(5),
        wal_status: row.get(6),
        safe_size: row.get(7),
    }
}

impl RaisedIdentity {
    /// The previous replica identity, in the syntax of `ALTER TABLE`.
    pub fn before(&self) -> &str {
        let (_, before) = self
            .sql
            .rsplit_once("REPLICA IDENTITY ")
            .unwrap_or_default();
        before.trim_end_matches(';')
    }
}

const VALUES: &str = "\
    SELECT s.name, pg_catalog.current_setting(s.name) FROM pg_catalog.pg_settings s \
    WHERE s.name = ANY ($1) ORDER BY pg_catalog.array_position($1, s.name)";

const USED: &str = "\
    SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots), \
           (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity \
            WHERE backend_type = 'walsender')";

const SLOTS: &str = "\
    SELECT s.database::text, s.slot_name::text, s.active_pid, s.restart_lsn::text, \
           s.confirmed_flush_lsn::text, \
           pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_insert_lsn(), s.restart_lsn)::int8, \
           s.wal_status, s.safe_wal_size \
    FROM pg_catalog.pg_replication_slots s JOIN pg_catalog.pg_database d ON d.datname = s.database \
    WHERE s.slot_name = 'tidegate_' || d.oid \
       OR pg_catalog.starts_with(s.slot_name::text, 'tidegate_' || d.oid || '_') \
    ORDER BY 1, 2";

const PUBLICATIONS: &str = "\
    SELECT p.pubname::text, pg_catalog.pg_get_userbyid(p.pubowner)::text, \
           ARRAY(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) \
                 FROM pg_catalog.pg_publication_rel r \
                 JOIN pg_catalog.pg_class c ON c.oid = r.prrelid \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE r.prpubid = p.oid ORDER BY 1), \
           pg_catalog.obj_description(p.oid, 'pg_publication') \
    FROM pg_catalog.pg_publication p \
    WHERE p.pubname IN ('tidegate', 'tidegate_inserts') ORDER BY 1";

/// Selects the tables among `$1` whose replica identity is still raised.
const RAISED: &str = "\
    SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.oid = ANY ($1) AND c.relreplident = 'f' ORDER BY 2";
