//! Who gets which change: the last changes, the tables with those that take changes as they come,
//! and the connections that are behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_sql::RoleName;
use tidegate_sql::log::{LogIdentity, LogPosition};
use tokio::sync::Notify;

use crate::change::Change;
use crate::connection::{Connection, Following, Gap, Member, Mode};
use crate::cursor::{Cursor, Place};
use crate::queue::{Item, Resync};
use crate::ring::Ring;
use crate::subscriber::Subscriber;
use crate::table::Table;

/// The state of a database's feed, which changes under one lock.
pub(crate) struct Hub {
    pub(crate) ring: Ring,
    pub(crate) log: LogIdentity,
    pub(crate) tables: HashMap<u32, Table>,
    /// Every subscription.
    pub(crate) subscribers: HashMap<u64, Arc<Subscriber>>,
    /// By the addresses of their queues.
    pub(crate) connections: HashMap<usize, Connection>,
    /// Those of them that follow.
    pub(crate) behind: HashSet<usize>,
    /// How far those are that have come back.
    pub(crate) pumps: HashMap<u64, Place>,
    /// How many definitions have come through the log.
    pub(crate) described: u64,
}

/// A connection that begins to read at its own pace.
#[derive(Debug)]
pub(crate) struct Behind {
    pub(crate) connection: usize,
    pub(crate) place: Place,
    pub(crate) wake: Arc<Notify>,
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

/// How a subscription goes on that was taken in.
#[derive(Debug)]
pub(crate) enum Start {
    /// Changes come by themselves.
    Nothing,
    /// Its connection follows.
    Follow(Behind),
    /// It catches up from a place.
    Resume(Place),
}

impl Hub {
    pub(crate) fn new(ring: Ring) -> Self {
        Self {
            ring,
            log: LogIdentity(0),
            tables: HashMap::new(),
            subscribers: HashMap::new(),
            connections: HashMap::new(),
            behind: HashSet::new(),
            pumps: HashMap::new(),
            described: 0,
        }
    }

    /// A table, made where it is not known yet.
    pub(crate) fn table(&mut self, relation: u32) -> &mut Table {
        let head = self.ring.head();
        self.tables
            .entry(relation)
            .or_insert_with(|| Table::new(head))
    }

    /// A stream has been opened. Unless it goes on where the last one ended, there is a gap.
    pub(crate) fn begin(&mut self, log: LogIdentity, start: LogPosition, goes_on: bool) {
        let other = self.log != log && self.log != LogIdentity(0);
        self.log = log;
        if goes_on && !other {
            return;
        }
        let start = Place::before(start);
        self.ring.restart(start);
        // What was before may have been missed here: who comes back reads it in the log.
        for table in self.tables.values_mut() {
            table.last = start;
        }
        for connection in self.connections.values_mut() {
            for member in &mut connection.members {
                member.since = start;
                member.whole = start;
            }
            if let Some(following) = &mut connection.following {
                following.restart(start);
            }
        }
        self.pumps.values_mut().for_each(|place| *place = start);
        let reason = if other {
            Resync::OtherLog
        } else {
            Resync::Interrupted
        };
        let all: Vec<_> = self.subscribers.values().cloned().collect();
        for subscriber in all {
            self.tell_gap(&subscriber, start, reason);
        }
    }

    /// Tells the subscriptions to a table that are concerned by what the log did not hold before a
    /// place: those that began before it, each once.
    pub(crate) fn tell_missed(&mut self, relation: u32, before: Place, reason: Resync) {
        let mut concerned = Vec::new();
        for connection in self.connections.values_mut() {
            for member in &mut connection.members {
                if member.subscriber.relation == relation && member.whole < before {
                    member.whole = before;
                    concerned.push(member.subscriber.clone());
                }
            }
        }
        let head = self.ring.head();
        for subscriber in concerned {
            self.tell_gap(&subscriber, head, reason);
        }
    }

    /// Tells a subscription that something was missed before a place. Not even a full queue may
    /// hide that.
    pub(crate) fn tell_gap(&mut self, subscriber: &Arc<Subscriber>, place: Place, reason: Resync) {
        let id = subscriber.id;
        let connection = self.connections.get_mut(&subscriber.outbox.address());
        if let Some(connection) = connection
            && let Some(member) = connection.member(id)
        {
            let mode = member.mode;
            if mode == Mode::Resumes {
                member.missed = Some(reason);
                return;
            }
            if mode == Mode::Follows
                && let Some(following) = &mut connection.following
            {
                // What it has yet to read is older.
                following.tell(Gap {
                    place,
                    subscriber: id,
                    reason,
                });
                return;
            }
        }
        let cursor = Cursor::new(self.log, place);
        subscriber.tell(Item::Resync { cursor, reason });
    }

    /// Hands a change out. Gives the connections that have no room for it.
    pub(crate) fn dispatch(&mut self, change: Change) -> Vec<Behind> {
        let change = Arc::new(change);
        let before = self.ring.head();
        self.ring.push(change.clone());
        let Some(table) = self.tables.get_mut(&change.shape.oid) else {
            return Vec::new();
        };
        table.last = change.place;
        table.reshape(&change.shape);
        let refused = table.dispatch(&change, self.log);
        let behind = refused
            .iter()
            .filter_map(|one| self.fall_behind(one.outbox.address(), before, Some(&change)));
        behind.collect()
    }

    /// From now on a connection reads what is behind a place at its own pace, all of its
    /// subscriptions together. Of a change that is being handed out some may have got their part.
    fn fall_behind(
        &mut self,
        address: usize,
        place: Place,
        change: Option<&Change>,
    ) -> Option<Behind> {
        let connection = self.connections.get_mut(&address)?;
        if connection.following.is_some() {
            return None;
        }
        let following = Following::behind(place);
        let wake = following.wake.clone();
        connection.following = Some(following);
        self.behind.insert(address);
        for member in &mut connection.members {
            if member.mode != Mode::Live {
                continue;
            }
            let subscriber = &member.subscriber;
            let Some(table) = self.tables.get_mut(&subscriber.relation) else {
                continue;
            };
            let changed = change.filter(|change| change.shape.oid == subscriber.relation);
            member.since = match changed {
                Some(change) if table.has_handed_out_to(subscriber) => change.place,
                _ => place,
            };
            member.mode = Mode::Follows;
            table.remove(subscriber);
            table.follow(subscriber.id, wake.clone());
        }
        Some(Behind {
            connection: address,
            place,
            wake,
        })
    }

    /// Takes a subscription in: acknowledges it, and has it go on from a place.
    pub(crate) fn attach(&mut self, subscriber: &Arc<Subscriber>, from: From) -> Start {
        let place = match from {
            From::After(place) => place,
            From::Now | From::Gap(_) => self.ring.head(),
        };
        let cursor = Cursor::new(self.log, place);
        self.subscribers.insert(subscriber.id, subscriber.clone());
        self.table(subscriber.relation).roles = None;
        subscriber.tell(Item::Acknowledged { cursor });
        if let From::Gap(reason) = from {
            subscriber.tell(Item::Resync { cursor, reason });
        }
        let connection = self.connections.entry(subscriber.outbox.address());
        connection.or_default().members.push(Member {
            subscriber: subscriber.clone(),
            mode: Mode::Resumes,
            since: place,
            whole: place,
            missed: None,
        });
        if let From::After(_) = from {
            subscriber.outbox.resume(subscriber.tag, cursor);
            self.pumps.insert(subscriber.id, place);
            return Start::Resume(place);
        }
        self.join(subscriber, place)
            .map_or(Start::Nothing, Start::Follow)
    }

    /// A subscription that has everything up to `since` goes on with the others of its connection.
    pub(crate) fn join(&mut self, subscriber: &Arc<Subscriber>, since: Place) -> Option<Behind> {
        let head = self.ring.head();
        self.pumps.remove(&subscriber.id);
        subscriber.outbox.resumed(subscriber.tag);
        let address = subscriber.outbox.address();
        let connection = self.connections.get_mut(&address)?;
        let follows = connection.following.is_some();
        let member = connection.member(subscriber.id)?;
        member.since = since;
        if let Some(reason) = member.missed.take() {
            let cursor = Cursor::new(self.log, since);
            subscriber.tell(Item::Resync { cursor, reason });
        }
        if !follows && subscriber.judge.is_none() && since <= head {
            self.go_live(subscriber);
            return None;
        }
        let behind = self.fall_behind(address, head, None);
        let connection = self.connections.get_mut(&address)?;
        let wake = connection.following.as_ref()?.wake.clone();
        connection.member(subscriber.id)?.mode = Mode::Follows;
        // It may be waiting, and have come to where it looks for this one too.
        wake.notify_one();
        let table = self.table(subscriber.relation);
        table.follow(subscriber.id, wake);
        behind
    }

    /// Hands changes to a subscription as they come.
    pub(crate) fn go_live(&mut self, subscriber: &Arc<Subscriber>) {
        let connection = self.connections.get_mut(&subscriber.outbox.address());
        if let Some(member) = connection.and_then(|known| known.member(subscriber.id)) {
            member.mode = Mode::Live;
        }
        let table = self.table(subscriber.relation);
        table.unfollow(subscriber.id);
        if !table.fits(subscriber) {
            table.unshape();
        }
        if let Err(why) = table.insert(subscriber.clone()) {
            subscriber.end(why);
            self.detach(subscriber);
        }
    }

    /// Forgets a subscription.
    pub(crate) fn detach(&mut self, subscriber: &Subscriber) {
        let id = subscriber.id;
        if self.subscribers.remove(&id).is_none() {
            return;
        }
        self.pumps.remove(&id);
        subscriber.outbox.forget(subscriber.tag);
        if let Some(table) = self.tables.get_mut(&subscriber.relation) {
            table.remove(subscriber);
            table.unfollow(id);
            table.roles = None;
        }
        let address = subscriber.outbox.address();
        if let Some(connection) = self.connections.get_mut(&address) {
            connection.members.retain(|one| one.subscriber.id != id);
            if let Some(following) = &connection.following {
                following.wake.notify_one();
            }
            if connection.members.is_empty() {
                self.connections.remove(&address);
                self.behind.remove(&address);
            }
        }
    }

    /// The roles of a table's subscriptions whose rights depend on roles and memberships.
    pub(crate) fn roles_to_check(&mut self, relation: u32) -> Arc<[RoleName]> {
        let Some(table) = self.tables.get_mut(&relation) else {
            return Arc::default();
        };
        let subscribers = self.subscribers.values();
        let roles = table.roles.get_or_insert_with(|| {
            let depends = |one: &&Arc<Subscriber>| {
                one.relation == relation && one.rights.lock().depends_on_roles
            };
            let roles = subscribers.filter(depends).map(|one| &one.login.role);
            let roles: HashSet<&RoleName> = roles.collect();
            roles.into_iter().cloned().collect()
        });
        roles.clone()
    }

    /// Whether somebody who does read is about to fall out of the ring.
    pub(crate) fn is_outrunning(&self) -> bool {
        let resumes = self.pumps.iter().any(|(id, place)| {
            let subscriber = self.subscribers.get(id);
            self.ring.share_behind(*place) > 0.5
                && subscriber.is_some_and(|one| one.outbox.is_moving())
        });
        let mut behind = self.behind.iter();
        resumes
            || behind.any(|address| {
                let connection = self.connections.get(address);
                let following = connection.and_then(|known| known.following.as_ref());
                let (Some(connection), Some(following)) = (connection, following) else {
                    return false;
                };
                let mut members = connection.in_mode(Mode::Follows);
                self.ring.share_behind(following.place) > 0.5
                    && members.any(|member| {
                        member.subscriber.outbox.is_moving()
                            && self.is_ahead(&member.subscriber, following.place)
                    })
            })
    }

    /// Whether there was a change of a subscription's table behind a place.
    fn is_ahead(&self, subscriber: &Subscriber, place: Place) -> bool {
        let table = self.tables.get(&subscriber.relation);
        table.is_some_and(|table| table.last > place)
    }
}
