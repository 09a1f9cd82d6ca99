//! The subscriptions of one connection. It is told what happened in the order of the commits,
//! whichever of its subscriptions that belongs to.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::cursor::Place;
use crate::queue::Resync;
use crate::subscriber::Subscriber;

/// A connection's subscriptions to a database.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) members: Vec<Member>,
    /// Set while the connection reads the ring at its own pace: one of its subscriptions has rows
    /// that PostgreSQL judges, or its queue was full.
    pub(crate) following: Option<Following>,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) mode: Mode,
    /// It has everything up to here, or need not have it.
    pub(crate) since: Place,
    /// What of its table the log did not hold before here it need not have, or was told of.
    pub(crate) whole: Place,
    /// Why it must be told of a gap once it has caught up: what it has yet to hear is older.
    pub(crate) missed: Option<Resync>,
}

/// How changes come to a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are pushed when they come.
    Live,
    /// With those of the others of its connection, at its pace.
    Follows,
    /// On its own: it has come back, and what the others have is newer.
    Resumes,
}

/// How far a connection is that reads at its own pace.
pub(crate) struct Following {
    pub(crate) place: Place,
    pub(crate) wake: Arc<Notify>,
    /// Whether `place` was set by a stream that began anew.
    restarted: bool,
    /// What its subscriptions must be told when it comes to these places.
    gaps: VecDeque<Gap>,
}

/// Something that a subscription has missed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) place: Place,
    /// The subscription's number.
    pub(crate) subscriber: u64,
    pub(crate) reason: Resync,
}

impl Connection {
    /// A subscription.
    pub(crate) fn member(&mut self, id: u64) -> Option<&mut Member> {
        let mut members = self.members.iter_mut();
        members.find(|member| member.subscriber.id == id)
    }

    /// Those that take changes in this way.
    pub(crate) fn in_mode(&self, mode: Mode) -> impl Iterator<Item = &Member> {
        self.members
            .iter()
            .filter(move |member| member.mode == mode)
    }

    /// Whether those that follow may take changes as they come, once they are at `head`.
    pub(crate) fn may_go_live(&self, head: Place) -> bool {
        let may = |member: &Member| member.subscriber.judge.is_none() && member.since <= head;
        self.in_mode(Mode::Follows).all(may)
    }
}

impl Following {
    /// Goes on behind a place.
    pub(crate) fn behind(place: Place) -> Self {
        Self {
            place,
            wake: Arc::default(),
            restarted: false,
            gaps: VecDeque::new(),
        }
    }

    /// The connection has dealt with everything up to a place.
    pub(crate) fn reach(&mut self, place: Place) {
        if !std::mem::take(&mut self.restarted) {
            self.place = place;
        }
    }

    /// The stream began anew, at a place that need not be later.
    pub(crate) fn restart(&mut self, place: Place) {
        self.place = place;
        self.restarted = true;
        self.gaps.clear();
    }

    /// There is something to be told.
    pub(crate) fn tell(&mut self, gap: Gap) {
        self.gaps.push_back(gap);
        self.wake.notify_one();
    }

    /// What must be told before anything behind its place.
    pub(crate) fn next_gap(&self) -> Option<Gap> {
        self.gaps.front().copied()
    }

    pub(crate) fn drop_gap(&mut self) {
        self.gaps.pop_front();
    }
}
