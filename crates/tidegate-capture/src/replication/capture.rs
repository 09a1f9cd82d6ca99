//! Adds a table to the capture, and waits until no change of the table can be missed.

use std::fmt::Write as _;
use std::time::Duration;

use tidegate_changelog::{Captured, Demand, LogError, LogPosition, LogResult};
use tidegate_sql::DatabaseName;
use tokio::time::Instant;

use super::metadata::ReplicaIdentity;
use super::table_info::{Leaf, TableInfo};
use super::{EVERYTHING, INSERTS, Shared, lock_backoff, replica_identity, tables, unreadable};
use crate::capture_session::CaptureSession;
use crate::open_transactions;

/// Captures a table; see [`tidegate_changelog::ChangeLog::capture`].
pub(super) async fn capture(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    let captured = capture_or_fail(shared, database, demand).await;
    if let Err(LogError::Unsupported(_) | LogError::NotAllowed { .. } | LogError::TimedOut { .. }) =
        &captured
    {
        replica_identity::unblock_writers(shared, database, demand.relation).await?;
    }
    captured
}

async fn capture_or_fail(
    shared: &Shared,
    database: &DatabaseName,
    demand: &Demand,
) -> LogResult<Captured> {
    let deadline = Instant::now() + demand.timeout;
    if let Some(owner) = CaptureSession::owner(&shared.logins, database).await? {
        let captured = owner
            .capture_by(shared, (database, demand), deadline)
            .await?;
        if captured.is_ok() {
            return captured;
        }
    }
    let admin = CaptureSession::admin(&shared.logins, database).await?;
    admin
        .capture_by(shared, (database, demand), deadline)
        .await?
}

/// The result of adding a table.
enum Added {
    /// The table is captured already, from this position on.
    Captured(LogPosition),
    /// The table is published. Changes may be missing if they were made by transactions that were
    /// open before the publication.
    Pending(Pending),
    /// This session lacks a privilege to capture the table.
    NotAllowed(LogError),
}

/// A capture that was begun. It is complete when all transactions that were open at its beginning
/// have ended.
struct Pending {
    /// The position at which the capture was begun, by this node or another.
    begun: LogPosition,
    /// The position from which every change of the table is already captured. In this case, this
    /// capture only adds columns to the row images. `None` if changes before the completion of this
    /// capture may be missing.
    before: Option<LogPosition>,
}

impl CaptureSession {
    /// Captures the table. The inner result is an error if this session lacks a privilege to do so.
    async fn capture_by(
        &self,
        shared: &Shared,
        (database, demand): (&DatabaseName, &Demand),
        deadline: Instant,
    ) -> LogResult<LogResult<Captured>> {
        loop {
            let added = self
                .add_until_locked(shared, (database, demand), deadline)
                .await?;
            let pending = match added {
                Added::Captured(since) => {
                    let barrier = since;
                    return Ok(Ok(Captured { since, barrier }));
                }
                Added::NotAllowed(error) => return Ok(Err(error)),
                Added::Pending(pending) => pending,
            };
            if let Some(captured) = self.finish(&pending, demand, deadline).await? {
                return Ok(Ok(captured));
            }
            // Another node has finished this capture or begun another one, so the table is added
            // again.
        }
    }

    /// Adds the table to a publication. Retries until the locks are granted or the deadline passes.
    /// Does not retry while PostgreSQL refuses UPDATE and DELETE of the table; see
    /// [`TableInfo::refuses_writers`].
    async fn add_until_locked(
        &self,
        shared: &Shared,
        (database, demand): (&DatabaseName, &Demand),
        deadline: Instant,
    ) -> LogResult<Added> {
        let (lock_backoff, table) = (&shared.lock_backoff, demand.relation);
        let timed_out = || LogError::TimedOut {
            what: "locking the table, which others read or write,".to_owned(),
            limit: demand.timeout,
        };
        let mut timeout = lock_backoff::ATTEMPT.0;
        while lock_backoff.wait_until(database, table, deadline).await {
            let begin = Instant::now();
            match self.add(demand, timeout).await {
                Err(LogError::TimedOut { .. }) => {
                    lock_backoff.record_failure(database, table, begin.elapsed());
                }
                added => return added,
            }
            timeout = (timeout * 2).min(lock_backoff::ATTEMPT.1);
            if self.refuses_writers(table).await? {
                break;
            }
        }
        Err(timed_out())
    }

    async fn add(&self, demand: &Demand, timeout: Duration) -> LogResult<Added> {
        self.begin().await?;
        let added = self.add_within(demand, timeout).await;
        self.end(added).await
    }

    async fn add_within(&self, demand: &Demand, timeout: Duration) -> LogResult<Added> {
        let mut table = TableInfo::of(self, demand.relation).await?;
        let raised: Vec<_> = table.to_raise(demand)?;
        let published = table.is_published(demand);
        let entry = table.metadata.0.get(&demand.relation);
        let complete = |changes| entry.filter(|_| published)?.complete(changes);
        let (since, before) = (complete(demand.changes), complete(true));
        if let (true, true, Some(since)) = (raised.is_empty(), table.publishes_generated, since) {
            return Ok(Added::Captured(since));
        }
        if !table.may_change {
            return Ok(Added::NotAllowed(not_allowed(&table)));
        }
        let now = self.now().await?;
        let mut commands = publications(&table);
        if !published {
            commands.push_str(&publish(&table, demand));
        }
        let keeps_inserts = table.is_published(&Demand {
            changes: false,
            ..*demand
        });
        let is_begun = published && raised.is_empty() && table.publishes_generated;
        let (raise, identities) = raise(&raised, timeout);
        for (oid, identity) in identities {
            table.metadata.0.entry(oid).or_default().before = identity;
        }
        if !table.unchanged {
            // A user or another program changed the publications, so changes of every table may be
            // missing.
            let entries = table.metadata.0.values_mut();
            entries.for_each(|entry| entry.begin(now, false));
        }
        let entry = table.metadata.0.entry(demand.relation).or_default();
        // If another node has begun the same capture, this node uses the position at which that
        // node began, so that both store the same position.
        let begun = entry.begun.filter(|_| is_begun).unwrap_or(now);
        entry.begin(begun, keeps_inserts);
        // The commands whose locks make other sessions wait come last, so that the locks are held
        // briefly.
        commands.push_str(&table.comment());
        commands.push_str(&raise);
        self.run(&commands).await?;
        Ok(Added::Pending(Pending { begun, before }))
    }

    /// Waits until the table is captured without a gap. Returns the position from which no change
    /// is missing; `None` if the table must be added again.
    async fn finish(
        &self,
        pending: &Pending,
        demand: &Demand,
        deadline: Instant,
    ) -> LogResult<Option<Captured>> {
        let rest = deadline.saturating_duration_since(Instant::now());
        let ended = open_transactions::wait_until_ended(&self.client, rest).await;
        ended.map_err(|error| match error {
            LogError::TimedOut { what, .. } => LogError::TimedOut {
                what,
                limit: demand.timeout,
            },
            error => error,
        })?;
        if pending.before.is_none() {
            self.republish(demand).await?;
        }
        self.mark(demand.relation, pending).await
    }

    /// The current end of the WAL. All visible transactions were committed before it.
    pub(super) async fn now(&self) -> LogResult<LogPosition> {
        let rows = self
            .rows("SELECT pg_catalog.pg_current_wal_insert_lsn()::text", &[])
            .await?;
        let text: &str = rows.first().map(|row| row.get(0)).unwrap_or_default();
        text.parse().map_err(|()| unreadable("a position"))
    }

    /// Stores the position from which the table is captured without a gap. That is the position of
    /// the earlier capture if the table was captured already, otherwise the current end of the log.
    /// Stores nothing and returns `None` if another node has stored a position or has changed the
    /// capture. A stored position must stay the same unless there is a gap.
    async fn mark(&self, relation: u32, pending: &Pending) -> LogResult<Option<Captured>> {
        self.begin().await?;
        let marked = async {
            let mut table = TableInfo::of(self, relation).await?;
            let seen = self.partitions(relation).await?;
            let barrier = self.now().await?;
            let since = pending.before.unwrap_or(barrier);
            let entry = table.metadata.0.entry(relation).or_default();
            if entry.since.is_some() || entry.begun != Some(pending.begun) {
                return Ok(None);
            }
            (entry.since, entry.begun) = (Some(since), None);
            // If a list of partitions is stored, this node does not replace it, because other nodes
            // may not have reported yet how the partitions changed since.
            if entry.partitions.is_none() {
                entry.partitions = seen.map(|seen| seen.partitions);
            }
            self.run(&table.comment()).await?;
            Ok(Some(Captured { since, barrier }))
        };
        let marked = marked.await;
        self.end(marked).await
    }
}

/// The commands that change the replica identities of tables to FULL, each with `timeout` as its
/// lock timeout. Also returns the OID and the previous identity of each table: `None` if it was
/// FULL.
fn raise(leaves: &[&Leaf], timeout: Duration) -> (String, Vec<(u32, Option<ReplicaIdentity>)>) {
    let mut commands = String::new();
    if !leaves.is_empty() {
        let timeout = timeout.as_millis();
        write!(commands, "; SET LOCAL lock_timeout = {timeout}")
            .expect("a String takes everything");
    }
    for leaf in leaves {
        let name = &leaf.name;
        write!(commands, "; ALTER TABLE ONLY {name} REPLICA IDENTITY FULL")
            .expect("a String takes everything");
    }
    let before = leaves.iter().map(|leaf| (leaf.oid, leaf.identity));
    (commands, before.collect())
}

/// The commands that make the publications publish generated columns. They also restore the other
/// options of the publications if a user or another program changed them.
fn publications(table: &TableInfo) -> String {
    let mut commands = String::new();
    for publication in [EVERYTHING, INSERTS] {
        if !table.unchanged {
            let options = tables::options(publication);
            write!(
                commands,
                "ALTER PUBLICATION \"{publication}\" SET ({options}); "
            )
            .expect("a String takes everything");
        }
        if !table.publishes_generated {
            write!(
                commands,
                "ALTER PUBLICATION \"{publication}\" SET (publish_generated_columns = stored); "
            )
            .expect("a String takes everything");
        }
    }
    commands
}

/// The commands that publish a table as demanded, with all its rows and columns.
fn publish(table: &TableInfo, demand: &Demand) -> String {
    let (publication, listed) = if demand.changes {
        (EVERYTHING, table.listed.0)
    } else {
        (INSERTS, table.listed.1)
    };
    let name = &table.name;
    let add = format!("ALTER PUBLICATION \"{publication}\" ADD TABLE ONLY {name}; ");
    if listed {
        return format!("ALTER PUBLICATION \"{publication}\" DROP TABLE ONLY {name}; {add}");
    }
    add
}

fn not_allowed(table: &TableInfo) -> LogError {
    LogError::NotAllowed {
        reason: format!(
            "the publications belong to {}, the table {} to {}",
            table.publisher, table.name, table.owner
        ),
        remedy: format!("run GRANT \"{}\" TO \"{}\"", table.owner, table.publisher),
    }
}
