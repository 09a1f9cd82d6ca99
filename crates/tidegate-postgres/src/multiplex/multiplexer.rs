//! Groups of requests that may share multiplexed connections.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidegate_pool::{PoolKey, PooledConnection};
use tidegate_sql::{Login, Result};
use tokio::time::Instant;

use super::backlog::MAX_BACKLOG;
use super::connection::Multiplexed;
use super::counts::Counts;
use super::driver::drive;
use super::send_queue::Enqueued;
use super::slot::{ConnectionSlot, SlotClaim};
use crate::connector::RoleConnector;
use crate::metadata::MetadataCache;
use crate::purity::MentionCache;
use crate::statement::StatementTask;

/// A group opens a multiplexed connection when a request arrives while at least this many other
/// requests of the group are running.
const MIN_OTHERS: usize = 4;
/// The maximum number of multiplexed connections of one group.
const MAX_CONNECTIONS: usize = 8;
/// If there are this many groups, the groups without running requests are removed before another
/// group is added.
const MAX_GROUPS: usize = 1024;

/// A pipeline is queued on the first connection whose pipelines are expected to take less than
/// this. A pipeline that would wait longer gets its response sooner from another backend.
const SHORT_BACKLOG: Duration = Duration::from_micros(200);

/// The groups of requests, by login. A login stands for one OAuth session of a user, or for a role
/// that several callers share, such as the default user's role.
pub(crate) struct Multiplexer {
    groups: RwLock<HashMap<Login, Arc<RequestGroup>>>,
    counts: Arc<Counts>,
}

impl Multiplexer {
    /// Creates a multiplexer. `connections` is the limit on connections of a role that only one
    /// user uses. Every role may have a quarter of this number of multiplexed connections.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            groups: RwLock::default(),
            counts: Arc::new(Counts {
                open: Mutex::default(),
                max_per_role: (connections / 4).max(1),
                delivered: AtomicU64::new(0),
            }),
        }
    }

    /// How many pipelines have returned their rows on multiplexed connections.
    pub(crate) fn delivered(&self) -> u64 {
        self.counts.delivered.load(Ordering::Relaxed)
    }

    /// Counts a pipeline that has returned its rows.
    pub(crate) fn count_delivered(&self) {
        self.counts.delivered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request in its group until the guard is dropped.
    pub(crate) fn enter(&self, login: &Login) -> InFlightGuard {
        let known = self.groups.read().get(login).cloned();
        let group = known.unwrap_or_else(|| self.insert(login));
        let others = group.running.fetch_add(1, Ordering::Relaxed);
        InFlightGuard { group, others }
    }

    fn insert(&self, login: &Login) -> Arc<RequestGroup> {
        let mut groups = self.groups.write();
        if groups.len() >= MAX_GROUPS {
            groups.retain(|_, group| group.running.load(Ordering::Relaxed) > 0);
        }
        let group = groups.entry(login.clone());
        group
            .or_insert_with(|| Arc::new(RequestGroup::new(&self.counts)))
            .clone()
    }
}

/// Requests that may share multiplexed connections.
struct RequestGroup {
    running: AtomicUsize,
    slots: Box<[Arc<ConnectionSlot>]>,
    counts: Arc<Counts>,
}

impl RequestGroup {
    fn new(counts: &Arc<Counts>) -> Self {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| available_parallelism().map_or(1, usize::from));
        let slots = (*processors)
            .min(counts.max_per_role)
            .clamp(1, MAX_CONNECTIONS);
        Self {
            running: AtomicUsize::new(0),
            slots: (0..slots).map(|_| Arc::default()).collect(),
            counts: counts.clone(),
        }
    }
}

/// Counts a request in its group until it is dropped.
pub(crate) struct InFlightGuard {
    group: Arc<RequestGroup>,
    /// How many other requests of the group were running when this one arrived.
    others: usize,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.group.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InFlightGuard {
    /// Whether no other request was running when this one arrived. A connection of its own then
    /// responds sooner than a multiplexed one.
    pub(crate) fn is_alone(&self) -> bool {
        self.others == 0
    }

    /// Queues a pipeline on the first multiplexed connection with a short backlog. If the receiver
    /// in [`Enqueued::Queued`] reports an error, the request has to run the pipeline on a
    /// connection of its own.
    pub(crate) fn enqueue(&self, tasks: &[StatementTask<'_>]) -> Enqueued {
        for slot in &self.group.slots {
            match slot.enqueue(tasks, SHORT_BACKLOG) {
                Enqueued::Full => {}
                enqueued => return enqueued,
            }
        }
        Enqueued::Full
    }

    /// Does the same as [`Self::enqueue`] on the multiplexed connection with the shortest backlog.
    /// Running the pipeline on a connection of its own would cost PostgreSQL more, because a
    /// backend would be woken for this pipeline only.
    pub(crate) fn enqueue_behind(&self, tasks: &[StatementTask<'_>]) -> Enqueued {
        // Statements that fill rows decide which subscribers may see a change. Each of these
        // statements may wait longer, because only the time at which the last one ends matters.
        let fills_rows = tasks.iter().any(|task| task.bound.statement.fills_rows());
        let limit = if fills_rows {
            Duration::MAX
        } else {
            MAX_BACKLOG
        };
        let open = self.group.slots.iter();
        let open = open.filter_map(|slot| Some((slot.backlog()?, slot)));
        match open.min_by_key(|(backlog, _)| *backlog) {
            Some((_, slot)) => slot.enqueue(tasks, limit),
            None => Enqueued::Full,
        }
    }

    /// Opens a multiplexed connection in the background if at least [`MIN_OTHERS`] other requests
    /// were running when this request arrived, and its statements `tasks` may be multiplexed.
    /// `pooled` checks out the connection.
    pub(crate) fn open<F>(
        &self,
        tasks: &[StatementTask<'_>],
        metadata: &Arc<MetadataCache>,
        pooled: impl FnOnce() -> F,
    ) where
        F: Future<Output = Result<PooledConnection<RoleConnector>>> + Send + 'static,
    {
        let now = Instant::now();
        let Some(first) = tasks.first() else {
            return;
        };
        if self.others < MIN_OTHERS || !tasks.iter().all(|task| is_eligible(task, now)) {
            return;
        }
        let Some(slot) = self.group.slots.iter().find(|slot| slot.may_open(now)) else {
            return;
        };
        let Some(claim) = SlotClaim::new(slot, &self.group.counts, PoolKey::from(first.login))
        else {
            return;
        };
        let (pooled, metadata) = (pooled(), metadata.clone());
        let switch = first.switch.map(|switch| switch.text());
        tokio::spawn(async move {
            // The error is ignored here. Requests that are not multiplexed check out a connection
            // of their own. They report the error.
            if let Ok(pooled) = pooled.await
                && let Some((connection, queue)) = Multiplexed::open(pooled, metadata, switch).await
            {
                claim.slot().state.lock().queue = Some(queue);
                drive(claim, connection).await;
            }
        });
    }
}

/// Whether the statement may be multiplexed: its description is cached, and it is quick and pure.
fn is_eligible(task: &StatementTask<'_>, now: Instant) -> bool {
    let description = task.metadata.description(task.bound, &task.login.role);
    description.is_some_and(|description| description.latency.is_quick(now))
        && !(task.metadata.purity).is_impure(&task.bound.statement, &MentionCache::default())
}
