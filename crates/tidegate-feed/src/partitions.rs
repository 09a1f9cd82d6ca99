//! Rows that come or go with partitions: PostgreSQL's log tells the changes of a partition as its
//! root's, and nothing when it is attached, detached, dropped or emptied as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_sql::Principal;
use tidegate_sql::log::LogPosition;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use crate::database::Database;
use crate::question::{Asked, ask, text};
use crate::queue::Resync;

/// Of each partitioned table: its number, and a text that is another one when anything about its
/// partitions is.
const TREES: &str = "\
    WITH RECURSIVE tree AS (\
        SELECT c.oid AS root, c.oid, c.relfilenode \
        FROM pg_catalog.pg_class c WHERE c.oid = ANY (:tables::oid[]) AND c.relkind = 'p' \
        UNION ALL \
        SELECT t.root, c.oid, c.relfilenode FROM tree t \
        JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid \
        JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid) \
    SELECT root::text, pg_catalog.md5(pg_catalog.string_agg(oid::text || '/' || relfilenode::text, ',' \
        ORDER BY oid)) FROM tree GROUP BY root";

/// Looks again and again, until it is aborted.
pub(crate) async fn watch(database: Arc<Database>) {
    let mut tick = interval(database.settings.partitions);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch {
        database,
        plain: HashSet::new(),
        seen: HashMap::new(),
        told: HashMap::new(),
    };
    loop {
        tick.tick().await;
        if let Err(error) = watch.look().await {
            debug!(%error, "partitions could not be looked at");
        }
    }
}

struct Watch {
    database: Arc<Database>,
    /// Tables without partitions, which never get any.
    plain: HashSet<u32>,
    /// What was last found of the others.
    seen: HashMap<u32, String>,
    /// Before which positions subscribers know of everything.
    told: HashMap<u32, LogPosition>,
}

impl Watch {
    async fn look(&mut self) -> tidegate_sql::Result<()> {
        let captured: Vec<u32> = self.database.captures.lock().keys().copied().collect();
        self.plain.retain(|table| captured.contains(table));
        self.seen.retain(|table, _| captured.contains(table));
        self.told.retain(|table, _| captured.contains(table));
        let unknown = captured.iter().filter(|table| !self.plain.contains(table));
        let unknown: Vec<String> = unknown.map(u32::to_string).collect();
        if unknown.is_empty() || !self.database.stream.borrow().live {
            return Ok(());
        }
        let who = Principal::Catalog(self.database.name.clone());
        let list = format!("{{{}}}", unknown.join(","));
        let asked = ask(&*self.database.executor, &who, &[], &[(TREES, &[&list])]).await?;
        let Asked::Answers(answers) = asked else {
            return Ok(());
        };
        let mut found = HashMap::new();
        for row in answers.iter().flatten() {
            let table: u32 = text(row, 0)
                .parse()
                .map_err(tidegate_sql::Error::internal)?;
            found.insert(table, text(row, 1).into_string());
        }
        let unknown = unknown.iter().filter_map(|table| table.parse().ok());
        let plain = unknown.filter(|table| !found.contains_key(table));
        self.plain.extend(plain);
        for (table, tree) in found {
            if self.seen.get(&table) != Some(&tree) && self.changed(table).await {
                self.seen.insert(table, tree);
            }
        }
        Ok(())
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
