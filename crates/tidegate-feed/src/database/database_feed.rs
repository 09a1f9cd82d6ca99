//! The feed of one database: the state that its tasks share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tidegate_changelog::{Captured, ChangeLog, Lineage, LogPosition};
use tidegate_sql::{DatabaseName, Executor};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use crate::catalog_query::CatalogReader;
use crate::database::captures::Captures;
use crate::database::catalog_snapshot::CatalogSnapshot;
use crate::database::stream_progress::StreamProgress;
use crate::decode::type_cache::TypeCache;
use crate::dispatch::attachment::{Attached, StartAt};
use crate::dispatch::case_folding::CaseFoldingCache;
use crate::dispatch::shared_hub::SharedHub;
use crate::dispatch::subscriber::Subscriber;
use crate::event::cursor::EventPosition;
use crate::event::item::Resync;
use crate::metrics::FeedMetrics;
use crate::settings::FeedSettings;

/// The feed of a database. Its parts have locks of their own. Methods of this type combine several
/// parts.
pub(crate) struct DatabaseFeed {
    pub(crate) name: DatabaseName,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) catalog: CatalogReader,
    pub(crate) settings: FeedSettings,
    pub(crate) hub: Arc<SharedHub>,
    pub(crate) types: TypeCache,
    pub(crate) case_folding: CaseFoldingCache,
    pub(crate) captures: Captures,
    pub(crate) stream: StreamProgress,
    /// Limits the number of replays that read the change log at the same time.
    pub(crate) replay_permits: Semaphore,
    /// Requests a poll of the catalog, because a definition has changed.
    pub(crate) poll_request: Notify,
    /// The result of the most recent poll of the catalog.
    pub(crate) snapshots: watch::Sender<Arc<CatalogSnapshot>>,
    pub(crate) metrics: Arc<FeedMetrics>,
    /// When the database was most recently found to have a subscription, or when an attempt to
    /// subscribe ended.
    pub(crate) last_used: Mutex<Instant>,
    subscriber_ids: AtomicU64,
    /// How many subscriptions are being started.
    subscribing: AtomicUsize,
}

impl DatabaseFeed {
    pub(crate) fn new(
        name: DatabaseName,
        log: Arc<dyn ChangeLog>,
        executor: Arc<dyn Executor>,
        settings: FeedSettings,
    ) -> Self {
        Self {
            catalog: CatalogReader::new(executor, name.clone()),
            name,
            log,
            hub: Arc::new(SharedHub::new(settings.ring_bytes)),
            types: TypeCache::default(),
            case_folding: CaseFoldingCache::default(),
            captures: Captures::default(),
            stream: StreamProgress::new(settings.subscribe_timeout),
            replay_permits: Semaphore::new(settings.max_replays),
            poll_request: Notify::new(),
            snapshots: watch::Sender::default(),
            metrics: Arc::default(),
            last_used: Mutex::new(Instant::now()),
            subscriber_ids: AtomicU64::new(1),
            subscribing: AtomicUsize::new(0),
            settings,
        }
    }

    pub(crate) fn next_subscriber_id(&self) -> u64 {
        self.subscriber_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Records that a stream was opened. `continues` says whether it starts where the previous
    /// stream ended. If it does not, or if the new log does not continue the previous log, reports
    /// a gap to every subscription.
    pub(crate) fn stream_opened(&self, lineage: &Lineage, start: LogPosition, continues: bool) {
        let mut hub = self.hub.lock();
        if !hub.is_continued_by(lineage) {
            self.captures.reset_positions();
            self.stream.update(|state| state.reached = LogPosition(0));
        }
        hub.stream_opened(lineage, start, continues);
    }

    /// Records that everything before a position was dispatched.
    pub(crate) fn advance(&self, position: LogPosition) {
        // The ring is advanced first, because tasks that wait for the position then read the ring.
        self.hub.advance(position);
        self.stream.advance(position);
    }

    /// Adds and acknowledges a subscription. Adds nothing and returns `None` if the change log has
    /// reported more than `definition_count` table definitions, because the subscription's
    /// privileges may then be outdated.
    pub(crate) fn attach(
        &self,
        subscriber: &Arc<Subscriber>,
        start: StartAt,
        definition_count: u64,
    ) -> Option<Attached> {
        let mut hub = self.hub.lock();
        if hub.definition_count != definition_count {
            return None;
        }
        // A gap that was reported after `start` was determined may have moved `since` forward.
        // Therefore `since` is read under the lock of the hub, under which gaps are reported.
        let since = self.captures.get(subscriber.relation);
        let since = since.map(|capture| capture.captured.since);
        let start = match (start, since) {
            (StartAt::After(position), Some(since)) if position.commit < since => {
                StartAt::Gap(Resync::Expired)
            }
            _ => start,
        };
        Some(hub.attach(subscriber, start))
    }

    /// Reports a pending gap to the table's subscriptions, unless it was already reported.
    pub(crate) fn report_gap(&self, relation: u32, gap: Captured) {
        // Both steps happen under one lock, because the stream of another change log must not be
        // opened between them. Positions of two logs cannot be compared. If such a stream was
        // opened before this lock was taken, `stream_opened` has removed the gap.
        let mut hub = self.hub.lock();
        if self.captures.take_gap(relation, gap) {
            let before = EventPosition::before(gap.since);
            hub.report_missed(relation, before, Resync::Interrupted);
        }
    }

    /// Whether the database has no subscription, and no subscription is being started.
    pub(crate) fn is_idle(&self) -> bool {
        self.subscribing.load(Ordering::Acquire) == 0 && !self.hub.has_subscribers()
    }
}

/// Keeps a database's feed running while a subscription is being started.
pub(crate) struct SubscribeGuard(pub(crate) Arc<DatabaseFeed>);

impl SubscribeGuard {
    pub(crate) fn new(database: Arc<DatabaseFeed>) -> Self {
        database.subscribing.fetch_add(1, Ordering::AcqRel);
        Self(database)
    }
}

impl Drop for SubscribeGuard {
    fn drop(&mut self) {
        *self.0.last_used.lock() = Instant::now();
        self.0.subscribing.fetch_sub(1, Ordering::AcqRel);
    }
}
