//! The requests that may be multiplexed with each other, and their connections.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use parking_lot::{Mutex, RwLock};
use tidegate_pool::{Key, Lease};
use tidegate_sql::{Login, Result};
use tokio::time::Instant;

use super::connection::Multiplexed;
use super::driver::drive;
use super::queue::Asked;
use super::slot::{Claim, Slot};
use crate::dictionary::Dictionary;
use crate::executor::RoleConnector;
use crate::session::task::Task;
use crate::suspects::Verdict;

/// So many other requests at once are worth a multiplexed connection.
const MANY: usize = 4;
/// Multiplexed connections of a group at most.
const MOST: usize = 8;
/// So many groups are kept before those without requests are forgotten.
const GROUPS: usize = 1024;

/// The groups, by login: those of one user's session, or of a shared connection's role.
pub(crate) struct Multiplexer {
    groups: RwLock<HashMap<Login, Arc<Group>>>,
    counts: Arc<Counts>,
}

/// What all groups count together.
pub(super) struct Counts {
    /// The multiplexed connections of a role.
    open: Mutex<HashMap<Key, usize>>,
    /// Multiplexed connections of a role at most.
    most: usize,
    /// Pipelines that were answered.
    answered: AtomicU64,
}

impl Counts {
    /// Counts a connection that is to be opened; `false` if the role has as many as it may.
    pub(super) fn open_one(&self, key: &Key) -> bool {
        let mut open = self.open.lock();
        let of_role = open.entry(key.clone()).or_default();
        let may = *of_role < self.most;
        *of_role += usize::from(may);
        may
    }

    /// Counts a connection that was closed.
    pub(super) fn close_one(&self, key: &Key) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                open.remove(key);
            }
        }
    }
}

impl Multiplexer {
    /// For roles that may have so many connections: a quarter of them may be multiplexed.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            groups: RwLock::default(),
            counts: Arc::new(Counts {
                open: Mutex::default(),
                most: (connections / 4).max(1),
                answered: AtomicU64::new(0),
            }),
        }
    }

    /// How many pipelines multiplexed connections have answered.
    pub(crate) fn answered(&self) -> u64 {
        self.counts.answered.load(Ordering::Relaxed)
    }

    /// Counts an answer.
    pub(crate) fn count(&self) {
        self.counts.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request in its group, until the entry is dropped.
    pub(crate) fn enter(&self, login: &Login) -> Entry {
        let known = self.groups.read().get(login).cloned();
        let group = known.unwrap_or_else(|| self.make(login));
        let others = group.running.fetch_add(1, Ordering::Relaxed);
        Entry { group, others }
    }

    fn make(&self, login: &Login) -> Arc<Group> {
        let mut groups = self.groups.write();
        if groups.len() >= GROUPS {
            groups.retain(|_, group| group.running.load(Ordering::Relaxed) > 0);
        }
        let group = groups.entry(login.clone());
        group
            .or_insert_with(|| Arc::new(Group::new(&self.counts)))
            .clone()
    }
}

/// Requests that may be multiplexed with each other.
struct Group {
    running: AtomicUsize,
    slots: Box<[Arc<Slot>]>,
    counts: Arc<Counts>,
}

impl Group {
    fn new(counts: &Arc<Counts>) -> Self {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| available_parallelism().map_or(1, usize::from));
        let slots = (*processors).min(counts.most).clamp(1, MOST);
        Self {
            running: AtomicUsize::new(0),
            slots: (0..slots).map(|_| Arc::default()).collect(),
            counts: counts.clone(),
        }
    }
}

/// A request that is counted in its group.
pub(crate) struct Entry {
    group: Arc<Group>,
    /// How many others ran when it came.
    others: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.group.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Entry {
    /// Queues a pipeline on a connection with room, when others run and it may. The answer may fail
    /// to come; then the pipeline has to run on a connection of its own.
    pub(crate) fn ask(&self, tasks: &[Task<'_>]) -> Asked {
        // Alone, a connection of one's own answers sooner.
        if self.others == 0 {
            return Asked::Unfit;
        }
        for slot in &self.group.slots {
            match slot.take(tasks) {
                Asked::Full => {}
                asked => return asked,
            }
        }
        Asked::Full
    }

    /// Opens a multiplexed connection when so many requests run at once that it is worth it, and
    /// this pipeline could use it; `lease` borrows the connection.
    pub(crate) fn open<F>(
        &self,
        tasks: &[Task<'_>],
        dictionary: &Arc<Dictionary>,
        lease: impl FnOnce() -> F,
    ) where
        F: Future<Output = Result<Lease<RoleConnector>>> + Send + 'static,
    {
        let now = Instant::now();
        let Some(first) = tasks.first() else {
            return;
        };
        if self.others < MANY || !tasks.iter().all(|task| is_fit(task, now)) {
            return;
        }
        let Some(slot) = self.group.slots.iter().find(|slot| slot.is_empty(now)) else {
            return;
        };
        let Some(claim) = Claim::new(slot, &self.group.counts, Key::from(first.login)) else {
            return;
        };
        let (lease, dictionary) = (lease(), dictionary.clone());
        let switch = first.switch.map(|switch| switch.text);
        tokio::spawn(async move {
            // A request that takes a connection itself reports why there is none.
            if let Ok(lease) = lease.await
                && let Some((wire, queue)) = Multiplexed::open(lease, dictionary, switch).await
            {
                claim.slot().state.lock().queue = Some(queue);
                drive(claim, wire).await;
            }
        });
    }
}

/// Whether a multiplexed connection would take the statement.
fn is_fit(task: &Task<'_>, now: Instant) -> bool {
    let shape = task.dictionary.shape(task.bound, &task.login.role);
    shape.is_some_and(|shape| shape.pace.is_quick(now))
        && !(task.dictionary.belief).suspects(&task.bound.statement, &Verdict::default())
}
