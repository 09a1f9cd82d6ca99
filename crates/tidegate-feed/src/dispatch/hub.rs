//! Decides which subscriptions get a change. Holds the most recent changes, the subscriptions to
//! each table, and the connections that lag behind the stream.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_changelog::{Lineage, LogIdentity, LogPosition};
use tidegate_sql::RoleName;

use crate::decode::change::RowChange;
use crate::dispatch::attachment::{Attached, LaggingConnection, StartAt};
use crate::dispatch::connection::{
    ConnectionState, ConnectionSubscriber, DeliveryMode, LaggingState, PendingGap,
};
use crate::dispatch::ring::Ring;
use crate::dispatch::subscriber::Subscriber;
use crate::dispatch::table::TableSubscribers;
use crate::event::cursor::{Cursor, EventPosition};
use crate::event::item::{Item, Resync};

/// The subscriptions of a database, under one lock; see [`crate::dispatch::shared_hub`].
pub(crate) struct Hub {
    /// The most recent changes of the database.
    pub(crate) ring: Ring,
    /// The change log that the stream reads.
    pub(crate) lineage: Lineage,
    /// The subscribed tables, by OID.
    pub(crate) tables: HashMap<u32, TableSubscribers>,
    /// All subscriptions, by id.
    pub(crate) subscribers: HashMap<u64, Arc<Subscriber>>,
    /// The connections, by [`crate::EventSender::connection_id`].
    pub(crate) connections: HashMap<usize, ConnectionState>,
    /// The ids of the connections that lag.
    pub(crate) lagging: HashSet<usize>,
    /// The position up to which each replaying subscription has read, by the id of the
    /// subscription.
    pub(crate) replays: HashMap<u64, EventPosition>,
    /// How many table definitions the feed has read from the change log.
    pub(crate) definition_count: u64,
}

impl Hub {
    pub(crate) fn new(ring: Ring) -> Self {
        Self {
            ring,
            lineage: Lineage::new(LogIdentity(0)),
            tables: HashMap::new(),
            subscribers: HashMap::new(),
            connections: HashMap::new(),
            lagging: HashSet::new(),
            replays: HashMap::new(),
            definition_count: 0,
        }
    }

    /// The state of a table. Adds the table if it has no state.
    pub(crate) fn table(&mut self, relation: u32) -> &mut TableSubscribers {
        let head = self.ring.head();
        self.tables
            .entry(relation)
            .or_insert_with(|| TableSubscribers::new(head))
    }

    /// Whether all changes that were dispatched are in the log of `lineage`, at the same positions.
    /// After a promotion the result is `false` if dispatched changes had not reached the new
    /// primary.
    pub(crate) fn is_continued_by(&self, lineage: &Lineage) -> bool {
        self.lineage.log == LogIdentity(0) || self.ring.head().is_in(lineage, self.lineage.log)
    }

    /// Records that a stream was opened. `continues` says whether it starts where the previous
    /// stream ended. If it does not, or if the new log does not continue the previous log, reports
    /// a gap to every subscription.
    pub(crate) fn stream_opened(&mut self, lineage: &Lineage, start: LogPosition, continues: bool) {
        let is_other_log = !self.is_continued_by(lineage);
        self.lineage = lineage.clone();
        if continues && !is_other_log {
            return;
        }
        let start = EventPosition::before(start);
        self.ring.restart(start);
        // Some changes before the start may not have been dispatched. With this `last_change`, a
        // subscription that resumes at an earlier position reads the change log.
        for table in self.tables.values_mut() {
            table.last_change = start;
        }
        for connection in self.connections.values_mut() {
            for member in &mut connection.members {
                member.since = start;
                member.complete_from = start;
            }
            if let Some(lagging) = &mut connection.lagging {
                lagging.restart(start);
            }
        }
        self.replays
            .values_mut()
            .for_each(|position| *position = start);
        let reason = if is_other_log {
            Resync::OtherLog
        } else {
            Resync::Interrupted
        };
        for subscriber in self.subscribers.values().cloned().collect::<Vec<_>>() {
            self.report_gap(&subscriber, start, reason);
        }
    }

    /// Reports that changes of a table before a position may be missing. A subscription gets no
    /// report if it began at this position or later, or if it already got a report of a gap that
    /// ends at this position or later.
    pub(crate) fn report_missed(&mut self, relation: u32, before: EventPosition, reason: Resync) {
        let mut affected = Vec::new();
        for connection in self.connections.values_mut() {
            for member in &mut connection.members {
                if member.subscriber.relation == relation && member.complete_from < before {
                    member.complete_from = before;
                    affected.push(member.subscriber.clone());
                }
            }
        }
        let head = self.ring.head();
        for subscriber in affected {
            self.report_gap(&subscriber, head, reason);
        }
    }

    /// Reports to a subscription that changes before a position may be missing. If the subscription
    /// replays or lags, the report is delivered after the older changes. Otherwise the report is
    /// queued immediately, even if the queue is full.
    pub(crate) fn report_gap(
        &mut self,
        subscriber: &Arc<Subscriber>,
        position: EventPosition,
        reason: Resync,
    ) {
        let id = subscriber.id;
        let connection = self.connections.get_mut(&subscriber.sender.connection_id());
        if let Some(connection) = connection
            && let Some(member) = connection.member(id)
        {
            let mode = member.mode;
            if mode == DeliveryMode::Replaying {
                member.missed = Some(reason);
                return;
            }
            if mode == DeliveryMode::Lagging
                && let Some(lagging) = &mut connection.lagging
            {
                // The connection still has to read older changes, which come before the gap.
                lagging.push_gap(PendingGap {
                    position,
                    subscriber: id,
                    reason,
                });
                return;
            }
        }
        let cursor = Cursor::new(self.lineage.log, position);
        subscriber.push_unbounded(Item::Resync { cursor, reason });
    }

    /// Pushes a change to the live subscriptions of its table. Returns the connections that lag
    /// from now on because their queues are full.
    pub(crate) fn dispatch(&mut self, change: RowChange) -> Vec<LaggingConnection> {
        let change = Arc::new(change);
        let before = self.ring.head();
        self.ring.push(change.clone());
        let Some(table) = self.tables.get_mut(&change.schema.oid) else {
            return Vec::new();
        };
        table.last_change = change.position;
        table.set_schema(&change.schema);
        let full = table.dispatch(&change, self.lineage.log);
        let lagging = full.iter().filter_map(|one| {
            self.start_lagging(one.sender.connection_id(), before, Some(&change))
        });
        lagging.collect()
    }

    /// Makes a connection read the ring at its own pace after `position`, for all its live
    /// subscriptions. `change` is the change that is being dispatched; `None` if there is none. A
    /// subscription that has already received this change does not get it again. Returns `None` if
    /// the connection already lags.
    fn start_lagging(
        &mut self,
        connection_id: usize,
        position: EventPosition,
        change: Option<&RowChange>,
    ) -> Option<LaggingConnection> {
        let connection = self.connections.get_mut(&connection_id)?;
        if connection.lagging.is_some() {
            return None;
        }
        let lagging = LaggingState::starting_after(position);
        let wake = lagging.wake.clone();
        connection.lagging = Some(lagging);
        self.lagging.insert(connection_id);
        for member in &mut connection.members {
            if member.mode != DeliveryMode::Live {
                continue;
            }
            let subscriber = &member.subscriber;
            let Some(table) = self.tables.get_mut(&subscriber.relation) else {
                continue;
            };
            let own_change = change.filter(|change| change.schema.oid == subscriber.relation);
            member.since = match own_change {
                Some(change) if table.has_received_last_change(subscriber) => change.position,
                _ => position,
            };
            member.mode = DeliveryMode::Lagging;
            table.remove(subscriber);
            table.add_lagging(subscriber.id, wake.clone());
        }
        Some(LaggingConnection {
            connection: connection_id,
            position,
            wake,
        })
    }

    /// Adds and acknowledges a subscription.
    pub(crate) fn attach(&mut self, subscriber: &Arc<Subscriber>, start: StartAt) -> Attached {
        let position = match start {
            StartAt::After(position) => position,
            StartAt::Now | StartAt::Gap(_) => self.ring.head(),
        };
        let cursor = Cursor::new(self.lineage.log, position);
        self.subscribers.insert(subscriber.id, subscriber.clone());
        self.table(subscriber.relation).roles = None;
        subscriber.push_unbounded(Item::Acknowledged { cursor });
        if let StartAt::Gap(reason) = start {
            subscriber.push_unbounded(Item::Resync { cursor, reason });
        }
        let connection = self.connections.entry(subscriber.sender.connection_id());
        connection.or_default().members.push(ConnectionSubscriber {
            subscriber: subscriber.clone(),
            mode: DeliveryMode::Replaying,
            since: position,
            complete_from: position,
            missed: None,
        });
        if let StartAt::After(_) = start {
            subscriber.sender.start_replay(subscriber.tag, cursor);
            self.replays.insert(subscriber.id, position);
            return Attached::Replay(position);
        }
        self.join_connection(subscriber, position)
            .map_or(Attached::Live, Attached::Lagging)
    }

    /// Lets a subscription that has received everything up to `since` join the other subscriptions
    /// of its connection. If the connection starts to lag, returns the connection, which then needs
    /// a reader.
    pub(crate) fn join_connection(
        &mut self,
        subscriber: &Arc<Subscriber>,
        since: EventPosition,
    ) -> Option<LaggingConnection> {
        let head = self.ring.head();
        self.replays.remove(&subscriber.id);
        subscriber.sender.finish_replay(subscriber.tag);
        let connection_id = subscriber.sender.connection_id();
        let connection = self.connections.get_mut(&connection_id)?;
        let is_lagging = connection.lagging.is_some();
        let member = connection.member(subscriber.id)?;
        member.since = since;
        if let Some(reason) = member.missed.take() {
            let cursor = Cursor::new(self.lineage.log, since);
            subscriber.push_unbounded(Item::Resync { cursor, reason });
        }
        if !is_lagging && subscriber.rls.is_none() && since <= head {
            self.make_live(subscriber);
            return None;
        }
        let lagging = self.start_lagging(connection_id, head, None);
        let connection = self.connections.get_mut(&connection_id)?;
        let wake = connection.lagging.as_ref()?.wake.clone();
        connection.member(subscriber.id)?.mode = DeliveryMode::Lagging;
        // If the connection already lagged, its reader may be waiting. It must now read the changes
        // for this subscription too.
        wake.notify_one();
        let table = self.table(subscriber.relation);
        table.add_lagging(subscriber.id, wake);
        lagging
    }

    /// Makes the live reader push changes to a subscription. If the subscription does not fit the
    /// schema of its table, the schema is removed. The next description of the table in the change
    /// log then decides whether the subscription can continue.
    pub(crate) fn make_live(&mut self, subscriber: &Arc<Subscriber>) {
        let connection = self.connections.get_mut(&subscriber.sender.connection_id());
        if let Some(member) = connection.and_then(|connection| connection.member(subscriber.id)) {
            member.mode = DeliveryMode::Live;
        }
        let table = self.table(subscriber.relation);
        table.remove_lagging(subscriber.id);
        if !table.fits(subscriber) {
            table.forget_schema();
        }
        if let Err(why) = table.insert(subscriber.clone()) {
            subscriber.end(why);
            self.detach(subscriber);
        }
    }

    /// Removes a subscription.
    pub(crate) fn detach(&mut self, subscriber: &Subscriber) {
        let id = subscriber.id;
        if self.subscribers.remove(&id).is_none() {
            return;
        }
        self.replays.remove(&id);
        subscriber.sender.forget(subscriber.tag);
        if let Some(table) = self.tables.get_mut(&subscriber.relation) {
            table.remove(subscriber);
            table.remove_lagging(id);
            table.roles = None;
        }
        let connection_id = subscriber.sender.connection_id();
        if let Some(connection) = self.connections.get_mut(&connection_id) {
            connection.members.retain(|one| one.subscriber.id != id);
            if let Some(lagging) = &connection.lagging {
                lagging.wake.notify_one();
            }
            if connection.members.is_empty() {
                self.connections.remove(&connection_id);
                self.lagging.remove(&connection_id);
            }
        }
    }

    /// The roles that have a subscription to a table, and whose privileges on it depend on the
    /// role's attributes or memberships. The list is cached until a subscription is added or
    /// removed, or until the privileges of a subscription change.
    pub(crate) fn roles_to_check(&mut self, relation: u32) -> Arc<[RoleName]> {
        let Some(table) = self.tables.get_mut(&relation) else {
            return Arc::default();
        };
        let subscribers = self.subscribers.values();
        let roles = table.roles.get_or_insert_with(|| {
            let depends = |one: &&Arc<Subscriber>| {
                one.relation == relation && one.privileges.lock().depends_on_roles
            };
            let roles = subscribers.filter(depends).map(|one| &one.login.role);
            let roles: HashSet<&RoleName> = roles.collect();
            roles.into_iter().cloned().collect()
        });
        roles.clone()
    }

    /// Whether the ring may soon drop changes that a reader has not delivered yet. A reader does not
    /// count if its client has stopped reading.
    pub(crate) fn is_outrunning_readers(&self) -> bool {
        let replay_at_risk = self.replays.iter().any(|(id, position)| {
            let subscriber = self.subscribers.get(id);
            self.ring.share_after(*position) > 0.5
                && subscriber.is_some_and(|one| one.sender.is_being_read())
        });
        let mut lagging = self.lagging.iter();
        replay_at_risk
            || lagging.any(|connection_id| {
                let connection = self.connections.get(connection_id);
                let lagging = connection.and_then(|connection| connection.lagging.as_ref());
                let (Some(connection), Some(lagging)) = (connection, lagging) else {
                    return false;
                };
                let mut members = connection.in_mode(DeliveryMode::Lagging);
                self.ring.share_after(lagging.position) > 0.5
                    && members.any(|member| {
                        member.subscriber.sender.is_being_read()
                            && self.has_changes_after(&member.subscriber, lagging.position)
                    })
            })
    }

    /// Whether the table of a subscription has changed after a position.
    fn has_changes_after(&self, subscriber: &Subscriber, position: EventPosition) -> bool {
        let table = self.tables.get(&subscriber.relation);
        table.is_some_and(|table| table.last_change > position)
    }
}
