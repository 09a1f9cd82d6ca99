//! The feed of one database: its stream, its ring, its tables with their subscriptions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tidegate_sql::log::{Captured, ChangeLog, Demand, LogIdentity, LogPosition};
use tidegate_sql::{DatabaseName, Executor, Type};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use crate::change::Change;
use crate::cursor::{Cursor, Place};
use crate::meter::Meter;
use crate::pump;
use crate::queue::{Ended, Item, Resync};
use crate::ring::Ring;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::stream_state::StreamState;
use crate::subscriber::Subscriber;
use crate::table::Table;

/// What a database's feed works with.
pub(crate) struct Database {
    pub(crate) name: DatabaseName,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) settings: Settings,
    inner: Mutex<Inner>,
    /// The types that are not built in.
    pub(crate) types: Mutex<Arc<HashMap<u32, Type>>>,
    /// What is captured; held while that changes.
    pub(crate) captures: tokio::sync::Mutex<HashMap<u32, Capture>>,
    pub(crate) catch_up: Semaphore,
    pub(crate) stream: watch::Sender<StreamState>,
    /// Asks the worker to find out how far the stream is.
    pub(crate) poke: Notify,
    pub(crate) meter: Arc<Meter>,
    ids: AtomicU64,
    /// When somebody last subscribed, or was seen to be subscribed.
    pub(crate) touched: Mutex<Instant>,
    /// How many are subscribing at this moment.
    entering: AtomicUsize,
}

/// A table's capture as it was last asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capture {
    pub(crate) demand: Demand,
    pub(crate) captured: Captured,
    /// When it was last needed.
    pub(crate) used: Instant,
}

struct Inner {
    ring: Ring,
    log: LogIdentity,
    tables: HashMap<u32, Table>,
    /// Every subscription.
    subscribers: HashMap<u64, Arc<Subscriber>>,
    /// How far those are that read at their own pace.
    pumps: HashMap<u64, Place>,
}

impl Inner {
    /// A table, made where it is not known yet.
    fn table(&mut self, relation: u32) -> &mut Table {
        let head = self.ring.head();
        self.tables
            .entry(relation)
            .or_insert_with(|| Table::new(head))
    }
}

/// What a reader of the ring finds.
pub(crate) enum Reading {
    /// Some changes, and the place up to which that is all.
    Changes(Vec<Arc<Change>>, Place),
    /// Nothing yet; wait for this.
    Nothing(Arc<Notify>, Place),
    /// The ring does not reach back that far.
    Behind,
    /// The subscription takes changes as they come from now on.
    Live,
}

impl Database {
    pub(crate) fn new(
        name: DatabaseName,
        log: Arc<dyn ChangeLog>,
        executor: Arc<dyn Executor>,
        settings: Settings,
    ) -> Self {
        Self {
            name,
            log,
            executor,
            inner: Mutex::new(Inner {
                ring: Ring::new(settings.ring_bytes),
                log: LogIdentity(0),
                tables: HashMap::new(),
                subscribers: HashMap::new(),
                pumps: HashMap::new(),
            }),
            types: Mutex::default(),
            captures: tokio::sync::Mutex::default(),
            catch_up: Semaphore::new(settings.catch_up),
            stream: watch::Sender::new(StreamState::default()),
            poke: Notify::new(),
            meter: Arc::default(),
            ids: AtomicU64::new(1),
            touched: Mutex::new(Instant::now()),
            entering: AtomicUsize::new(0),
            settings,
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A stream has been opened. Unless it goes on where the last one ended, there is a gap.
    pub(crate) fn begin(&self, log: LogIdentity, start: LogPosition, goes_on: bool) {
        let mut inner = self.inner.lock();
        let other = inner.log != log && inner.log != LogIdentity(0);
        inner.log = log;
        if goes_on && !other {
            return;
        }
        inner.ring.restart(Place::before(start));
        let reason = if other {
            Resync::OtherLog
        } else {
            Resync::Interrupted
        };
        let cursor = Cursor::new(log, Place::before(start));
        for subscriber in inner.subscribers.values() {
            // Not even a full queue may hide a gap.
            let item = Item::Resync { cursor, reason };
            subscriber.tell(item);
        }
        let start = Place::before(start);
        inner.pumps.values_mut().for_each(|place| *place = start);
    }

    /// The last place that was handed out.
    pub(crate) fn head(&self) -> Place {
        self.inner.lock().ring.head()
    }

    /// Whether everything behind a place is in memory.
    pub(crate) fn covers(&self, place: Place) -> bool {
        self.inner.lock().ring.covers(place)
    }

    /// The cursor of a place.
    pub(crate) fn cursor(&self, place: Place) -> Cursor {
        Cursor::new(self.inner.lock().log, place)
    }

    /// Which log it is.
    pub(crate) fn log_identity(&self) -> LogIdentity {
        self.inner.lock().log
    }

    /// A table is like this from here on.
    pub(crate) fn reshape(&self, shape: &Arc<Shape>) {
        if let Some(table) = self.inner.lock().tables.get_mut(&shape.oid) {
            table.reshape(shape);
        }
    }

    /// Whether a subscription fits what was last known of its table.
    pub(crate) fn fits(&self, subscriber: &Subscriber) -> bool {
        let inner = self.inner.lock();
        inner
            .tables
            .get(&subscriber.relation)
            .is_none_or(|table| table.fits(subscriber))
    }

    /// Forgets what a table was like, unless the subscription fits it.
    pub(crate) fn unshape_unless(&self, subscriber: &Subscriber) {
        let mut inner = self.inner.lock();
        if let Some(table) = inner.tables.get_mut(&subscriber.relation)
            && !table.fits(subscriber)
        {
            table.unshape();
        }
    }

    /// Hands a change out.
    pub(crate) fn dispatch(self: &Arc<Self>, change: Change) {
        let change = Arc::new(change);
        let mut inner = self.inner.lock();
        let Inner {
            ring,
            log,
            tables,
            pumps,
            ..
        } = &mut *inner;
        let before = ring.head();
        ring.push(change.clone());
        let Some(table) = tables.get_mut(&change.shape.oid) else {
            return;
        };
        table.last = change.place;
        table.reshape(&change.shape);
        for subscriber in table.dispatch(&change, *log) {
            pumps.insert(subscriber.id, before);
            pump::spawn(self.clone(), subscriber, before, false);
        }
    }

    /// The stream has come this far.
    pub(crate) fn advance(&self, position: LogPosition) {
        self.inner.lock().ring.reach(Place::before(position));
        self.stream.send_if_modified(|stream| {
            let risen = position > stream.reached;
            stream.reached = stream.reached.max(position);
            risen
        });
    }

    /// Whether somebody who does read is about to fall out of the ring.
    pub(crate) fn is_outrunning(&self) -> bool {
        let inner = self.inner.lock();
        inner.pumps.iter().any(|(id, place)| {
            inner.ring.share_behind(*place) > 0.5
                && inner
                    .subscribers
                    .get(id)
                    .is_some_and(|one| one.outbox.is_moving())
        })
    }

    /// Takes a subscription in: acknowledges it, and has it live from now on or catching up from
    /// a place.
    pub(crate) fn attach(self: &Arc<Self>, subscriber: &Arc<Subscriber>, from: From) {
        let mut inner = self.inner.lock();
        let head = inner.ring.head();
        let cursor = match from {
            From::After(place) => Cursor::new(inner.log, place),
            From::Now | From::Gap(_) => Cursor::new(inner.log, head),
        };
        inner.subscribers.insert(subscriber.id, subscriber.clone());
        let item = Item::Acknowledged { cursor };
        subscriber.tell(item);
        if let From::Gap(reason) = from {
            let item = Item::Resync { cursor, reason };
            subscriber.tell(item);
        }
        if let (From::Now | From::Gap(_), None) = (from, &subscriber.judge) {
            let table = inner.table(subscriber.relation);
            if let Err(why) = table.insert(subscriber.clone()) {
                inner.subscribers.remove(&subscriber.id);
                subscriber.end(why);
            }
            return;
        }
        let (place, resumes) = match from {
            From::After(place) => (place, true),
            From::Now | From::Gap(_) => (head, false),
        };
        inner.table(subscriber.relation);
        inner.pumps.insert(subscriber.id, place);
        pump::spawn(self.clone(), subscriber.clone(), place, resumes);
    }

    /// What is in the ring for a subscription behind a place.
    pub(crate) fn read(&self, subscriber: &Arc<Subscriber>, after: Place) -> Reading {
        let mut inner = self.inner.lock();
        inner.table(subscriber.relation);
        let Inner {
            ring,
            tables,
            pumps,
            ..
        } = &mut *inner;
        let Some(table) = tables.get_mut(&subscriber.relation) else {
            return Reading::Behind;
        };
        // Behind its last change there is nothing of the table, however far the ring has gone on.
        let after = if table.last <= after {
            after.max(ring.start())
        } else {
            after
        };
        if !ring.covers(after) {
            return Reading::Behind;
        }
        let (changes, place) = ring.read(after, subscriber.relation);
        pumps.insert(subscriber.id, place);
        if !changes.is_empty() || place < ring.head() {
            return Reading::Changes(changes, place);
        }
        // A replay may be ahead of the stream, whose changes must not come twice.
        if subscriber.judge.is_some() || place > ring.head() {
            return Reading::Nothing(table.wake.clone(), place);
        }
        pumps.remove(&subscriber.id);
        if !table.fits(subscriber) {
            table.unshape();
        }
        if let Err(why) = table.insert(subscriber.clone()) {
            subscriber.end(why);
        }
        Reading::Live
    }

    /// Where a pump is after a gap that the stream had.
    pub(crate) fn pump_place(&self, subscriber: &Subscriber) -> Option<Place> {
        self.inner.lock().pumps.get(&subscriber.id).copied()
    }

    /// Forgets a subscription.
    pub(crate) fn detach(&self, subscriber: &Subscriber) {
        let mut inner = self.inner.lock();
        inner.subscribers.remove(&subscriber.id);
        inner.pumps.remove(&subscriber.id);
        if let Some(table) = inner.tables.get_mut(&subscriber.relation) {
            table.remove(subscriber);
            table.wake.notify_waiters();
        }
    }

    /// Every subscription. Those that are over are forgotten.
    pub(crate) fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        let all: Vec<_> = self.inner.lock().subscribers.values().cloned().collect();
        let (over, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_over());
        for subscriber in over {
            self.detach(&subscriber);
        }
        rest
    }

    /// Whether nobody is subscribed or subscribing.
    pub(crate) fn is_idle(&self) -> bool {
        self.entering.load(Ordering::Acquire) == 0 && self.inner.lock().subscribers.is_empty()
    }

    /// Ends everything.
    pub(crate) fn end(&self, why: &Ended) {
        for subscriber in self.subscribers() {
            subscriber.end(why.clone());
            self.detach(&subscriber);
        }
    }
}

/// Somebody who is subscribing: meanwhile the database is needed.
pub(crate) struct Entering(pub(crate) Arc<Database>);

impl Entering {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        database.entering.fetch_add(1, Ordering::AcqRel);
        Self(database)
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        *self.0.touched.lock() = Instant::now();
        self.0.entering.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// With what commits from now on.
    Now,
    /// Behind a place.
    After(Place),
    /// With what commits from now on, and what was before is lost.
    Gap(Resync),
}
