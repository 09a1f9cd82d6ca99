//! Rows that come or go with partitions: PostgreSQL's log tells the changes of a partition as its
//! root's, and nothing when it is attached, detached, dropped or emptied as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_sql::log::LogPosition;
use tokio::time::Instant;
use tracing::debug;

use crate::database::Database;
use crate::look::Found;
use crate::queue::Resync;

/// Compares what each look finds with the one before, until it is aborted.
pub(crate) async fn watch(database: Arc<Database>) {
    let mut found = database.found.subscribe();
    let mut watch = Watch {
        database,
        seen: HashMap::new(),
        told: HashMap::new(),
    };
    while found.changed().await.is_ok() {
        let found = found.borrow_and_update().clone();
        watch.compare(&found).await;
    }
}

struct Watch {
    database: Arc<Database>,
    /// What was last found of partitioned tables.
    seen: HashMap<u32, Box<str>>,
    /// Before which positions subscribers know of everything.
    told: HashMap<u32, LogPosition>,
}

impl Watch {
    async fn compare(&mut self, found: &Found) {
        self.seen
            .retain(|table, _| found.captures.contains_key(table));
        self.told
            .retain(|table, _| found.captures.contains_key(table));
        for (table, tree) in &found.trees {
            if self.seen.get(table) != Some(tree) && self.changed(*table).await {
                self.seen.insert(*table, tree.clone());
            }
        }
    }

    /// Something about the partitions of a table is another thing than before. Tells its
    /// subscriptions if rows came or went; says whether that could be found out.
    async fn changed(&mut self, table: u32) -> bool {
        let database = &self.database;
        let Some(begun) = database.captures.lock().get(&table).map(|one| one.begun) else {
            return true;
        };
        let deadline = Instant::now() + database.settings.patience;
        // A stream that is behind has yet to tell who emptied the whole table.
        let Ok(now) = database
            .log
            .retain(&database.name, LogPosition::default())
            .await
        else {
            return false;
        };
        if database.reach(now, deadline).await.is_err() {
            return false;
        }
        let emptied = database.emptied(table);
        let moved = database
            .log
            .partitions(&database.name, table, &emptied)
            .await;
        let moved = match moved {
            Ok(Some(moved)) => moved,
            Ok(None) => return true,
            Err(error) => {
                debug!(table, %error, "partitions could not be looked at");
                return false;
            }
        };
        let told = self.told.entry(table).or_insert(begun);
        if moved <= *told {
            return true;
        }
        if database.reach(moved, deadline).await.is_err() {
            return false;
        }
        *told = moved;
        if let Some(capture) = database.captures.lock().get_mut(&table) {
            capture.captured.since = capture.captured.since.max(moved);
        }
        database.tell_missed(table, moved, Resync::Partitions);
        true
    }
}
