//! The state that all databases of a node share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_changelog::SharedLog;
use tidegate_sql::DatabaseName;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::nats::Nats;
use crate::seal::Seal;
use crate::settings::BusSettings;

/// How long a node counts as using a database after its last message about the database.
pub(crate) const PRESENCE_TIMEOUT: Duration = Duration::from_secs(5);

/// The state that all databases of a node share.
pub(crate) struct SharedBus {
    pub(crate) log: Arc<dyn SharedLog>,
    pub(crate) settings: BusSettings,
    pub(crate) seal: Seal,
    /// The beginning of all NATS subjects of this cluster.
    pub(crate) cell: String,
    /// The connection; `None` before the first one is open.
    pub(crate) nats: watch::Sender<Option<Arc<Nats>>>,
    /// Notified when the connection was opened or reopened.
    pub(crate) opened: Arc<Notify>,
    /// Why the bus does not work, or works only in part; `None` if it works.
    pub(crate) problem: Mutex<Option<String>>,
    /// Whether the last request to JetStream got no answer. In this case the NATS server may
    /// deliver no messages either.
    pub(crate) is_mute: AtomicBool,
    /// The databases whose messages JetStream does not keep.
    unstored: Mutex<HashSet<DatabaseName>>,
    /// For each database, the time of the last message of another node that uses it.
    others: Mutex<HashMap<DatabaseName, Instant>>,
    /// The number of databases that this node reads for all nodes.
    pub(crate) databases_read: AtomicUsize,
    pub(crate) counters: Counters,
}

/// Counters since the start of the process. Their meanings are those of the fields of `BusStatus`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent: AtomicU64,
    pub(crate) unsent: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) from_store: AtomicU64,
    pub(crate) from_slot: AtomicU64,
}

/// The beginning of all NATS subjects of a cluster.
pub(crate) fn cell(seal: &Seal) -> String {
    format!("tidegate.{}", seal.name("cell"))
}

impl SharedBus {
    pub(crate) fn new(log: Arc<dyn SharedLog>, settings: BusSettings) -> Self {
        let seal = Seal::new(settings.key.clone(), settings.session);
        Self {
            log,
            cell: cell(&seal),
            seal,
            settings,
            nats: watch::Sender::new(None),
            opened: Arc::default(),
            problem: Mutex::default(),
            is_mute: AtomicBool::new(false),
            unstored: Mutex::default(),
            others: Mutex::default(),
            databases_read: AtomicUsize::new(0),
            counters: Counters::default(),
        }
    }

    /// The connection, unless it is broken.
    pub(crate) fn connected(&self) -> Option<Arc<Nats>> {
        let nats = self.nats.borrow().clone();
        nats.filter(|nats| nats.is_connected())
    }

    /// Waits for the first connection. The returned connection may be broken.
    pub(crate) async fn first_connection(&self) -> Arc<Nats> {
        let mut nats = self.nats.subscribe();
        loop {
            if let Some(nats) = nats.borrow_and_update().clone() {
                return nats;
            }
            // Waiting fails only if the sender was dropped, but it lives as long as `self`.
            let _ = nats.changed().await;
        }
    }

    /// Records whether JetStream fails to keep the messages of a database that this node reads.
    pub(crate) fn note_unstored(&self, database: &DatabaseName, is_unstored: bool) {
        let mut unstored = self.unstored.lock();
        if is_unstored {
            unstored.insert(database.clone());
        } else {
            unstored.remove(database);
        }
    }

    /// Whether JetStream keeps the messages of this node's readers.
    pub(crate) fn is_stored(&self) -> bool {
        self.unstored.lock().is_empty()
    }

    /// Records that another node uses a database.
    pub(crate) fn note_other_node(&self, database: &DatabaseName) {
        let mut others = self.others.lock();
        others.retain(|_, last_message| last_message.elapsed() < PRESENCE_TIMEOUT);
        others.insert(database.clone(), Instant::now());
    }

    /// Whether another node uses a database.
    pub(crate) fn has_others(&self, database: &DatabaseName) -> bool {
        let last_message = self.others.lock().get(database).copied();
        last_message.is_some_and(|last_message| last_message.elapsed() < PRESENCE_TIMEOUT)
    }
}
