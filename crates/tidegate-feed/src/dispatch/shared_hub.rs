//! The hub with its lock. Each method that changes the hub takes the lock once, except
//! [`SharedHub::subscribers`], [`SharedHub::count_definition`] and [`SharedHub::end_all`].

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tidegate_changelog::{LogIdentity, LogPosition};
use tidegate_sql::RoleName;
use tokio::sync::Notify;

use crate::decode::change::RowChange;
use crate::decode::schema::RelationSchema;
use crate::dispatch::attachment::LaggingConnection;
use crate::dispatch::backlog::{self, BacklogRead, ReplayRead};
use crate::dispatch::hub::Hub;
use crate::dispatch::ring::Ring;
use crate::dispatch::subscriber::Subscriber;
use crate::event::cursor::{Cursor, EventPosition};
use crate::event::item::{Ended, Resync};

/// The hub of a database. The tasks of the database's feed share it.
pub(crate) struct SharedHub(Mutex<Hub>);

impl SharedHub {
    /// Creates a hub whose ring holds up to `ring_bytes` bytes of changes.
    pub(crate) fn new(ring_bytes: usize) -> Self {
        Self(Mutex::new(Hub::new(Ring::new(ring_bytes))))
    }

    /// Changes how many bytes of changes the ring may hold.
    pub(crate) fn set_ring_bytes(&self, bytes: usize) {
        self.0.lock().ring.set_limit(bytes);
    }

    /// Locks the hub, for a step that also uses other state. Lock order: the map in `Captures` may
    /// be locked while the hub is locked, but the hub must not be locked while that map is locked.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Hub> {
        self.0.lock()
    }

    /// Calls [`Hub::dispatch`].
    #[must_use = "these connections lag: their changes must be read from the ring or the change log"]
    pub(crate) fn dispatch(&self, change: RowChange) -> Vec<LaggingConnection> {
        self.0.lock().dispatch(change)
    }

    /// Reports that changes of a table before a position may be missing; see
    /// [`Hub::report_missed`].
    pub(crate) fn report_missed(&self, relation: u32, before: LogPosition, reason: Resync) {
        let before = EventPosition::before(before);
        self.0.lock().report_missed(relation, before, reason);
    }

    /// The lower 32 bits of the ids of the most recent transactions in which the stream reported a
    /// TRUNCATE of the table.
    pub(crate) fn truncations(&self, relation: u32) -> Vec<u32> {
        let hub = self.0.lock();
        let table = hub.tables.get(&relation);
        table.map_or_else(Vec::new, |table| {
            table.truncations.iter().copied().collect()
        })
    }

    /// The position up to which everything was dispatched.
    pub(crate) fn head(&self) -> EventPosition {
        self.0.lock().ring.head()
    }

    /// Whether the ring contains every change after a position.
    pub(crate) fn covers(&self, position: EventPosition) -> bool {
        self.0.lock().ring.covers(position)
    }

    /// The cursor for a position in the change log that the stream reads.
    pub(crate) fn cursor(&self, position: EventPosition) -> Cursor {
        Cursor::new(self.0.lock().lineage.log, position)
    }

    pub(crate) fn log_identity(&self) -> LogIdentity {
        self.0.lock().lineage.log
    }

    /// Whether a cursor belongs to the stream's change log, or to an older change log that the
    /// stream's log continues.
    pub(crate) fn is_known(&self, cursor: Cursor) -> bool {
        cursor.is_in(&self.0.lock().lineage)
    }

    /// Records that everything before a position was dispatched.
    pub(crate) fn advance(&self, position: LogPosition) {
        self.0.lock().ring.reach(EventPosition::before(position));
    }

    /// Sets the schema that a table has for the next changes. Does nothing for a table without
    /// subscriptions.
    pub(crate) fn set_schema(&self, schema: &Arc<RelationSchema>) {
        if let Some(table) = self.0.lock().tables.get_mut(&schema.oid) {
            table.set_schema(schema);
        }
    }

    /// Whether a subscription fits the schema that the change log most recently described for its
    /// table.
    pub(crate) fn fits(&self, subscriber: &Subscriber) -> bool {
        let hub = self.0.lock();
        hub.tables
            .get(&subscriber.relation)
            .is_none_or(|table| table.fits(subscriber))
    }

    /// Removes the schema of a table, unless the subscription fits it.
    pub(crate) fn forget_schema_unless(&self, subscriber: &Subscriber) {
        let mut hub = self.0.lock();
        if let Some(table) = hub.tables.get_mut(&subscriber.relation)
            && !table.fits(subscriber)
        {
            table.forget_schema();
        }
    }

    /// Calls [`Hub::is_outrunning_readers`].
    pub(crate) fn is_outrunning_readers(&self) -> bool {
        self.0.lock().is_outrunning_readers()
    }

    /// Calls [`backlog::read_replay`].
    pub(crate) fn read_replay(
        &self,
        subscriber: &Arc<Subscriber>,
        after: EventPosition,
    ) -> ReplayRead {
        backlog::read_replay(&mut self.0.lock(), subscriber, after)
    }

    /// Calls [`backlog::read_lagging`].
    pub(crate) fn read_lagging(
        &self,
        connection: usize,
        wake: &Arc<Notify>,
        done: EventPosition,
    ) -> BacklogRead {
        backlog::read_lagging(&mut self.0.lock(), connection, wake, done)
    }

    /// The position of a subscription's replay; `None` if the subscription does not replay. If a
    /// new stream was opened during the replay, the position may be the start of the new stream.
    pub(crate) fn replay_position(&self, subscriber: &Subscriber) -> Option<EventPosition> {
        self.0.lock().replays.get(&subscriber.id).copied()
    }

    /// Removes a subscription.
    pub(crate) fn detach(&self, subscriber: &Subscriber) {
        self.0.lock().detach(subscriber);
    }

    /// All subscriptions that have not ended. This method also removes the subscriptions that have
    /// ended.
    pub(crate) fn subscribers(&self) -> Vec<Arc<Subscriber>> {
        let all: Vec<_> = self.0.lock().subscribers.values().cloned().collect();
        let (ended, open): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.is_ended());
        for subscriber in ended {
            self.detach(&subscriber);
        }
        open
    }

    /// All subscriptions to a table, except those that have ended.
    pub(crate) fn subscribers_of(&self, relation: u32) -> Vec<Arc<Subscriber>> {
        let hub = self.0.lock();
        let all = hub.subscribers.values();
        all.filter(|one| one.relation == relation && !one.is_ended())
            .cloned()
            .collect()
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        !self.0.lock().subscribers.is_empty()
    }

    /// How many table definitions have come through the change log.
    pub(crate) fn definition_count(&self) -> u64 {
        self.0.lock().definition_count
    }

    /// Counts a table definition that came through the change log. Returns the subscriptions to the
    /// table.
    pub(crate) fn count_definition(&self, relation: u32) -> Vec<Arc<Subscriber>> {
        self.0.lock().definition_count += 1;
        self.subscribers_of(relation)
    }

    /// Calls [`Hub::roles_to_check`].
    pub(crate) fn roles_to_check(&self, relation: u32) -> Arc<[RoleName]> {
        self.0.lock().roles_to_check(relation)
    }

    /// Removes the cached result of [`SharedHub::roles_to_check`], because the privileges of a
    /// subscription to the table have changed.
    pub(crate) fn forget_roles(&self, relation: u32) {
        if let Some(table) = self.0.lock().tables.get_mut(&relation) {
            table.roles = None;
        }
    }

    pub(crate) fn end_all(&self, why: &Ended) {
        for subscriber in self.subscribers() {
            subscriber.end(why.clone());
            self.detach(&subscriber);
        }
    }
}
