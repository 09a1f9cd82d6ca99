//! Removes all objects that the feed created in a database, at the request of an operator.

use std::time::Duration;

use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::{Instant, sleep};

use super::status::{DatabaseCapture, captured};
use super::{Replication, Shared, release, slot};
use crate::capture_session::CaptureSession;
use crate::error;

/// The time limit for terminated processes to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Everything is removed.
    Done {
        /// The objects that existed before the removal.
        removed: DatabaseCapture,
        /// The slots that were dropped.
        slots: Vec<String>,
    },
    /// These nodes are reading the log, so nothing was changed.
    Streaming(Vec<StreamingNode>),
    /// A node started to read during the removal and has created some of the objects again.
    Recreated,
    /// There are objects that neither the administrator nor the database's owner may change. No
    /// node reads the log. A superuser must remove these objects.
    Left(DatabaseCapture),
}

/// A node that reads the log of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamingNode {
    /// The replication slot of the stream.
    pub slot: String,
    /// The id of the backend process that serves the stream.
    pub process: i32,
    /// The address from which the node connects. `None` for a Unix socket, or if the administrator
    /// may not see it.
    pub address: Option<String>,
}

impl Replication {
    /// Removes the feed from a database: restores raised replica identities, drops the publications
    /// and the slot. If nodes read the log and `end_streams` is false, removes nothing. If
    /// `end_streams` is true, first ends the streams of these nodes, which open new streams as soon
    /// as they can.
    ///
    /// # Errors
    ///
    /// If the database does not exist, or a login or a statement failed.
    pub async fn remove(&self, database: &DatabaseName, end_streams: bool) -> LogResult<Removal> {
        let streaming = self.streaming(database).await?;
        if !streaming.is_empty() {
            if !end_streams {
                return Ok(Removal::Streaming(streaming));
            }
            self.end(database, &streaming).await?;
        }
        let there = captured(&self.shared, database).await?;
        let slots = self.cluster().await?.slots;
        release::release(&self.shared, database, &[]).await?;
        let left = captured(&self.shared, database).await?;
        // The comment of the publication holds the previous identities, so the publication is
        // dropped last.
        if !left.raised.is_empty() {
            return self.explain_remaining(database).await;
        }
        match drop_publications(&self.shared, database).await? {
            Dropped::All => {}
            Dropped::Recreated => return Ok(Removal::Recreated),
            Dropped::NotAllowed => return self.explain_remaining(database).await,
        }
        slot::abandon(&self.shared, database).await?;
        if end_streams {
            // Nodes that connected again during the removal read a log without captures. They
            // notice this only when their streams end, so the streams are ended here.
            let again = self.streaming(database).await?;
            self.end(database, &again).await?;
        }
        let slots = slots.into_iter().filter(|slot| slot.database == *database);
        let slots = slots.map(|slot| slot.name).collect();
        self.confirm(database, there, slots).await
    }

    /// Returns the reason why objects are left. If a node reads the log, it may have created the
    /// objects again or prevented their removal. Otherwise a privilege is missing.
    async fn explain_remaining(&self, database: &DatabaseName) -> LogResult<Removal> {
        if !self.streaming(database).await?.is_empty() {
            return Ok(Removal::Recreated);
        }
        Ok(Removal::Left(captured(&self.shared, database).await?))
    }

    /// Checks that everything is removed, and returns the result of the removal.
    async fn confirm(
        &self,
        database: &DatabaseName,
        removed: DatabaseCapture,
        slots: Vec<String>,
    ) -> LogResult<Removal> {
        let left = captured(&self.shared, database).await?;
        let cluster = self.cluster().await?;
        let slot_left = cluster.slots.iter().any(|slot| slot.database == *database);
        if slot_left || !left.publications.is_empty() {
            return Ok(Removal::Recreated);
        }
        Ok(Removal::Done { removed, slots })
    }

    /// The nodes that read the log of a database.
    async fn streaming(&self, database: &DatabaseName) -> LogResult<Vec<StreamingNode>> {
        let admin = CaptureSession::admin(&self.shared.logins, database).await?;
        let rows = admin.rows(STREAMING, &[]).await?;
        let server = |row: &tokio_postgres::Row| StreamingNode {
            slot: row.get(0),
            process: row.get(1),
            address: row.get(2),
        };
        Ok(rows.iter().map(server).collect())
    }

    /// Ends streams, and waits until they have ended. Uses the login that opened them.
    async fn end(&self, database: &DatabaseName, streams: &[StreamingNode]) -> LogResult<()> {
        let reader = &self.shared.reader;
        // `pg_terminate_backend` is called in the login's own database, because in a tenant's
        // database no user may call it.
        let opened = tidegate_service::open(reader, &reader.admin_database).await;
        let client = opened.map_err(|e| error::of_connection(e, &reader.admin_role))?;
        let slots: Vec<&str> = streams.iter().map(|stream| stream.slot.as_str()).collect();
        let failed = |error: tokio_postgres::Error| error::of_statement(&error, END_TIMEOUT);
        client.query(TERMINATE, &[&slots]).await.map_err(failed)?;
        let deadline = Instant::now() + END_TIMEOUT;
        loop {
            let left = self.streaming(database).await?;
            let old = left.iter().find(|stream| slots.contains(&&*stream.slot));
            let Some(old) = old else {
                return Ok(());
            };
            if Instant::now() > deadline {
                let what = format!("the end of the process {}", old.process);
                return Err(LogError::TimedOut {
                    what,
                    limit: END_TIMEOUT,
                });
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The result of dropping the publications.
enum Dropped {
    All,
    /// A publication exists again after it was dropped, because a node created it.
    Recreated,
    /// There is a publication that neither the administrator nor the owner may drop.
    NotAllowed,
}

/// Drops the publications, as the owner or as the administrator.
async fn drop_publications(shared: &Shared, database: &DatabaseName) -> LogResult<Dropped> {
    let owner = CaptureSession::owner(&shared.logins, database).await?;
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    let sessions: Vec<_> = owner.into_iter().chain([admin]).collect();
    for session in &sessions {
        session.drop_publications().await?;
    }
    let mut dropped = Dropped::All;
    for session in &sessions {
        for row in session.rows(PUBLICATIONS, &[]).await? {
            if row.get(1) {
                return Ok(Dropped::Recreated);
            }
            dropped = Dropped::NotAllowed;
        }
    }
    Ok(dropped)
}

impl CaptureSession {
    async fn drop_publications(&self) -> LogResult<()> {
        for row in self.rows(PUBLICATIONS, &[]).await? {
            let (name, may_drop): (&str, bool) = (row.get(0), row.get(1));
            if may_drop {
                self.run(&format!("DROP PUBLICATION IF EXISTS \"{name}\""))
                    .await?;
            }
        }
        Ok(())
    }
}

const PUBLICATIONS: &str = "\
    SELECT pubname::text, pg_catalog.pg_has_role(pubowner, 'USAGE') \
    FROM pg_catalog.pg_publication WHERE pubname IN ('tidegate', 'tidegate_inserts') ORDER BY 1";

const STREAMING: &str = "\
    SELECT s.slot_name::text, s.active_pid, pg_catalog.host(a.client_addr) \
    FROM pg_catalog.pg_replication_slots s \
    JOIN pg_catalog.pg_database d ON d.datname = s.database \
    LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = s.active_pid \
    WHERE d.datname = pg_catalog.current_database() AND s.active_pid IS NOT NULL \
    AND (s.slot_name = 'tidegate_' || d.oid \
         OR pg_catalog.starts_with(s.slot_name::text, 'tidegate_' || d.oid || '_')) \
    ORDER BY 1";

const TERMINATE: &str = "\
    SELECT pg_catalog.pg_terminate_backend(active_pid) FROM pg_catalog.pg_replication_slots \
    WHERE slot_name::text = ANY ($1) AND active_pid IS NOT NULL";
