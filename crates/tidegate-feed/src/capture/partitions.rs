//! Detects rows that appear or disappear together with a partition. The change log reports changes
//! of rows in a partition as changes of the root table. It reports nothing if a whole partition is
//! attached, detached, dropped or truncated.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_changelog::LogPosition;
use tokio::time::Instant;
use tracing::debug;

use crate::database::catalog_snapshot::CatalogSnapshot;
use crate::database::database_feed::DatabaseFeed;
use crate::event::item::Resync;

/// Compares the partitions in each snapshot of the catalog with those in the previous snapshot.
/// Runs until it is aborted.
pub(crate) async fn watch(database: Arc<DatabaseFeed>) {
    let mut snapshots = database.snapshots.subscribe();
    let mut watch = PartitionWatch {
        database,
        last_trees: HashMap::new(),
        reported: HashMap::new(),
    };
    while snapshots.changed().await.is_ok() {
        let snapshot = snapshots.borrow_and_update().clone();
        watch.compare(&snapshot).await;
    }
}

struct PartitionWatch {
    database: Arc<DatabaseFeed>,
    /// The most recently processed fingerprint of each table's partitions.
    last_trees: HashMap<u32, Box<str>>,
    /// For each table, the position up to which changes of its partitions were reported.
    reported: HashMap<u32, LogPosition>,
}

impl PartitionWatch {
    async fn compare(&mut self, snapshot: &CatalogSnapshot) {
        self.last_trees
            .retain(|table, _| snapshot.captures.contains_key(table));
        self.reported
            .retain(|table, _| snapshot.captures.contains_key(table));
        for (table, tree) in &snapshot.partition_trees {
            if self.last_trees.get(table) != Some(tree) && self.process_change(*table).await {
                self.last_trees.insert(*table, tree.clone());
            }
        }
    }

    /// Reports a gap if a change of a table's partitions made rows appear or disappear. Returns
    /// `false` if this could not be determined. The next snapshot then leads to another attempt.
    async fn process_change(&mut self, table: u32) -> bool {
        let database = &self.database;
        let Some(capture) = database.captures.get(table) else {
            return true;
        };
        let deadline = Instant::now() + database.settings.subscribe_timeout;
        // The change log reports a TRUNCATE of the whole table, which empties all partitions. The
        // stream must have reached the TRUNCATE before the partitions are checked. Otherwise the
        // emptied partitions would be reported a second time, as a change of partitions.
        let no_change = LogPosition::default();
        let Ok(now) = database.log.retain(&database.name, no_change).await else {
            return false;
        };
        let stream = &database.stream;
        if stream.wait_until_reached(now, deadline).await.is_err() {
            return false;
        }
        let truncations = database.hub.truncations(table);
        let log = &database.log;
        let changed_at = match log.partitions(&database.name, table, &truncations).await {
            Ok(Some(changed_at)) => changed_at,
            Ok(None) => return true,
            Err(error) => {
                debug!(database = %database.name, relation = table, %error,
                       "could not check partitions");
                return false;
            }
        };
        let reported = self.reported.entry(table).or_insert(capture.first_captured);
        if changed_at <= *reported {
            return true;
        }
        if stream
            .wait_until_reached(changed_at, deadline)
            .await
            .is_err()
        {
            return false;
        }
        *reported = changed_at;
        // From now on, cursors from before the change are expired; see `DatabaseFeed::attach`.
        database.captures.update(table, |capture| {
            capture.captured.since = capture.captured.since.max(changed_at);
        });
        database
            .hub
            .report_missed(table, changed_at, Resync::Partitions);
        true
    }
}
