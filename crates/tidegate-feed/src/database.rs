//! The feed of one database: its stream, its ring, its tables with their subscriptions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tidegate_filter::Letters;
use tidegate_sql::log::{Captured, ChangeLog, Demand, LogIdentity, LogPosition};
use tidegate_sql::{DatabaseName, Executor, RoleName, Type};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use crate::change::Change;
use crate::cursor::{Cursor, Place};
use crate::hub::{From, Hub, Start};
use crate::labels::Label;
use crate::letters::Collation;
use crate::look::Found;
use crate::meter::Meter;
use crate::queue::{Ended, Resync};
use crate::reading::{Next, Reading};
use crate::ring::Ring;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::stream_state::StreamState;
use crate::subscriber::Subscriber;
use crate::{follower, pump};

/// What a database's feed works with.
pub(crate) struct Database {
    pub(crate) name: DatabaseName,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) settings: Settings,
    hub: Mutex<Hub>,
    /// The types that are not built in.
    pub(crate) types: Mutex<Arc<HashMap<u32, Type>>>,
    /// How collations fold letters, by their schemas and names; nothing where as in no other
    /// language.
    pub(crate) letters: Mutex<HashMap<Collation, Option<Arc<Letters>>>>,
    /// The labels of enums that were asked for, and when.
    pub(crate) asked_labels: Mutex<HashMap<Label, std::time::Instant>>,
    /// What is captured.
    pub(crate) captures: Mutex<HashMap<u32, Capture>>,
    /// Held while tables are captured, and alone while they are let go of.
    pub(crate) capturing: tokio::sync::RwLock<()>,
    /// Held while one table is captured, which waits for its writers.
    turns: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    pub(crate) catch_up: Semaphore,
    pub(crate) stream: watch::Sender<StreamState>,
    /// Asks the worker to find out how far the stream is.
    pub(crate) poke: Notify,
    /// Asks the worker to begin anew with what commits from then on.
    pub(crate) reopen: Notify,
    /// Says that a definition has changed.
    pub(crate) redefined: Notify,
    /// What the last look at the catalog found.
    pub(crate) found: watch::Sender<Arc<Found>>,
    /// Says that there is a gap to be told.
    pub(crate) gapped: Notify,
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
    /// From where on it was captured when it was first asked for.
    pub(crate) begun: LogPosition,
    /// When it was last needed.
    pub(crate) used: Instant,
    /// Something was missed: it is to be captured anew.
    pub(crate) lost: bool,
    /// It was captured anew like this, and its subscriptions are yet to be told.
    pub(crate) untold: Option<Captured>,
    /// So it was last captured anew since then, which is to be told behind that.
    pub(crate) untold_since: Option<Captured>,
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
            hub: Mutex::new(Hub::new(Ring::new(settings.ring_bytes))),
            types: Mutex::default(),
            letters: Mutex::default(),
            asked_labels: Mutex::default(),
            captures: Mutex::default(),
            capturing: tokio::sync::RwLock::default(),
            turns: Mutex::default(),
            catch_up: Semaphore::new(settings.catch_up),
            stream: watch::Sender::new(StreamState::default()),
            poke: Notify::new(),
            reopen: Notify::new(),
            redefined: Notify::new(),
            found: watch::Sender::default(),
            gapped: Notify::new(),
            meter: Arc::default(),
            ids: AtomicU64::new(1),
            touched: Mutex::new(Instant::now()),
            entering: AtomicUsize::new(0),
            settings,
        }
    }

    /// Serialises what is done to capture a table.
    pub(crate) fn turn(&self, relation: u32) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.lock().entry(relation).or_default().clone()
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A stream has been opened. Unless it goes on where the last one ended, there is a gap.
    pub(crate) fn begin(&self, log: LogIdentity, start: LogPosition, goes_on: bool) {
        let before = self.log_identity();
        if before != log && before != LogIdentity(0) {
            // The positions of another log say nothing about this one.
            for known in self.captures.lock().values_mut() {
                known.captured.since = LogPosition(0);
                // Everybody is told of another log.
                (known.untold, known.untold_since) = (None, None);
            }
            self.stream
                .send_modify(|stream| stream.reached = LogPosition(0));
        }
        self.hub.lock().begin(log, start, goes_on);
    }

    /// Notes that something of a table was missed, if it is still captured from `since` on.
    pub(crate) fn lose(&self, relation: u32, since: LogPosition) {
        if let Some(known) = self.captures.lock().get_mut(&relation) {
            known.lost |= known.captured.since == since;
        }
    }

    /// Notes that something was missed of a table before it was captured like this, which is to be
    /// told when the stream has come there. What is to be told already does not wait for it: a
    /// table may be lost more often than the stream catches up.
    pub(crate) fn miss(&self, relation: u32, captured: Captured) {
        let barrier = captured.barrier.max(captured.since);
        if let Some(known) = self.captures.lock().get_mut(&relation) {
            let gap = Some(Captured {
                barrier,
                ..captured
            });
            match known.untold {
                None => known.untold = gap,
                Some(_) => known.untold_since = gap,
            }
        }
        self.gapped.notify_one();
    }

    /// The gaps that are to be told.
    pub(crate) fn untold(&self) -> Vec<(u32, Captured)> {
        let captures = self.captures.lock();
        let untold = captures.iter();
        untold
            .filter_map(|(relation, known)| Some((*relation, known.untold?)))
            .collect()
    }

    /// Tells the gap before a table was captured like this, unless that was done.
    pub(crate) fn tell_untold(&self, relation: u32, gap: Captured) {
        let mut hub = self.hub.lock();
        // Another log, whose positions mean something else, finds either nothing or everybody told.
        let is_untold = {
            let mut captures = self.captures.lock();
            let known = captures.get_mut(&relation);
            let known = known.filter(|known| known.untold == Some(gap));
            known.map(|known| known.untold = known.untold_since.take())
        };
        if is_untold.is_some() {
            let before = Place::before(gap.since);
            hub.tell_missed(relation, before, Resync::Interrupted);
        }
    }

    /// Tells the subscriptions to a table that began before a position, and have not been told,
    /// that something is missing before it.
    pub(crate) fn tell_missed(&self, relation: u32, before: LogPosition, reason: Resync) {
        let mut hub = self.hub.lock();
        hub.tell_missed(relation, Place::before(before), reason);
    }

    /// The last transactions of which the stream has told that they emptied a table.
    pub(crate) fn emptied(&self, relation: u32) -> Vec<u32> {
        let hub = self.hub.lock();
        let table = hub.tables.get(&relation);
        table.map_or_else(Vec::new, |table| table.emptied.iter().copied().collect())
    }

    /// The last place that was handed out.
    pub(crate) fn head(&self) -> Place {
        self.hub.lock().ring.head()
    }

    /// Whether everything behind a place is in memory.
    pub(crate) fn covers(&self, place: Place) -> bool {
        self.hub.lock().ring.covers(place)
    }

    /// The cursor of a place.
    pub(crate) fn cursor(&self, place: Place) -> Cursor {
        Cursor::new(self.hub.lock().log, place)
    }

    /// Which log it is.
    pub(crate) fn log_identity(&self) -> LogIdentity {
        self.hub.lock().log
    }

    /// A table is like this from here on.
    pub(crate) fn reshape(&self, shape: &Arc<Shape>) {
        if let Some(table) = self.hub.lock().tables.get_mut(&shape.oid) {
            table.reshape(shape);
        }
    }

    /// Whether a subscription fits what was last known of its table.
    pub(crate) fn fits(&self, subscriber: &Subscriber) -> bool {
        let hub = self.hub.lock();
        hub.tables
            .get(&subscriber.relation)
            .is_none_or(|table| table.fits(subscriber))
    }

    /// Forgets what a table was like, unless the subscription fits it.
    pub(crate) fn unshape_unless(&self, subscriber: &Subscriber) {
        let mut hub = self.hub.lock();
        if let Some(table) = hub.tables.get_mut(&subscriber.relation)
            && !table.fits(subscriber)
        {
            table.unshape();
        }
    }

    /// Hands a change out.
    pub(crate) fn dispatch(self: &Arc<Self>, change: Change) {
        let behind = self.hub.lock().dispatch(change);
        for behind in behind {
            follower::spawn(self.clone(), behind);
        }
    }

    /// The stream has come this far.
    pub(crate) fn advance(&self, position: LogPosition) {
        self.hub.lock().ring.reach(Place::before(position));
        self.stream.send_if_modified(|stream| {
            let risen = position > stream.reached;
            stream.reached = stream.reached.max(position);
            risen
        });
    }

    /// Whether somebody who does read is about to fall out of the ring.
    pub(crate) fn is_outrunning(&self) -> bool {
        self.hub.lock().is_outrunning()
    }

    /// Takes a subscription in: acknowledges it, and has it live from now on or catching up from
    /// a place. Not if there have been other definitions than the `described` first.
    pub(crate) fn attach(
        self: &Arc<Self>,
        subscriber: &Arc<Subscriber>,
        from: From,
        described: u64,
    ) -> bool {
        let start = {
            let mut hub = self.hub.lock();
            if hub.described != described {
                return false;
            }
            // Who is not there yet when others are told of a gap finds it here.
            let captures = self.captures.lock();
            let from = match (from, captures.get(&subscriber.relation)) {
                (From::After(place), Some(known)) if place.commit < known.captured.since => {
                    From::Gap(Resync::Expired)
                }
                _ => from,
            };
            drop(captures);
            hub.attach(subscriber, from)
        };
        match start {
            Start::Nothing => {}
            Start::Follow(behind) => follower::spawn(self.clone(), behind),
            Start::Resume(place) => pump::spawn(self.clone(), subscriber.clone(), place),
        }
        true
    }

    /// How many definitions have come through the log.
    pub(crate) fn described(&self) -> u64 {
        self.hub.lock().described
    }

    /// What is in the ring for a subscription behind a place.
    pub(crate) fn read(&self, subscriber: &Arc<Subscriber>, after: Place) -> Reading {
        self.hub.lock().read(subscriber, after)
    }

    /// What is in the ring for a connection that follows.
    pub(crate) fn follow(&self, connection: usize, wake: &Arc<Notify>, done: Place) -> Next {
        self.hub.lock().follow(connection, wake, done)
    }

    /// Where a pump is after a gap that the stream had.
    pub(crate) fn pump_place(&self, subscriber: &Subscriber) -> Option<Place> {
        self.hub.lock().pumps.get(&subscriber.id).copied()
    }

    /// Forgets a subscription.
    pub(crate) fn detach(&self, subscriber: &Subscriber) {
        self.hub.lock().detach(subscriber);
    }

    /// Every subscription. Those that are over are forgotten.
    pub(crate) fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        let all: Vec<_> = self.hub.lock().subscribers.values().cloned().collect();
        let (over, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_over());
        for subscriber in over {
            self.detach(&subscriber);
        }
        rest
    }

    /// A definition has come through the log. Gives the subscriptions to its table.
    pub(crate) fn describe(&self, relation: u32) -> Vec<Arc<Subscriber>> {
        self.hub.lock().described += 1;
        self.subscribers_of(relation)
    }

    /// The subscriptions to a table.
    pub(crate) fn subscribers_of(&self, relation: u32) -> Vec<Arc<Subscriber>> {
        let hub = self.hub.lock();
        let all = hub.subscribers.values();
        all.filter(|one| one.relation == relation && !one.is_over())
            .cloned()
            .collect()
    }

    /// The roles of a table's subscriptions whose rights depend on roles and memberships.
    pub(crate) fn roles_to_check(&self, relation: u32) -> Arc<[RoleName]> {
        self.hub.lock().roles_to_check(relation)
    }

    /// The rights of a subscription to a table are others now.
    pub(crate) fn forget_roles(&self, relation: u32) {
        if let Some(table) = self.hub.lock().tables.get_mut(&relation) {
            table.roles = None;
        }
    }

    /// Whether nobody is subscribed or subscribing.
    pub(crate) fn is_idle(&self) -> bool {
        self.entering.load(Ordering::Acquire) == 0 && self.hub.lock().subscribers.is_empty()
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
