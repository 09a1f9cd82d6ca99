//! What those that are behind find in the ring.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::change::Change;
use crate::connection::{Gap, Member, Mode};
use crate::cursor::Place;
use crate::hub::{Behind, Hub};
use crate::subscriber::Subscriber;

/// What a subscription finds that has come back.
pub(crate) enum Reading {
    /// Some changes, and the place up to which that is all.
    Changes(Vec<Arc<Change>>, Place),
    /// The ring does not reach back that far.
    Lost,
    /// It has caught up, and goes on with the others of its connection.
    Joined(Option<Behind>),
}

/// What a connection finds that follows.
pub(crate) enum Next {
    /// Some changes for those that follow, and the place up to which that is all.
    Changes(Vec<Member>, Vec<Arc<Change>>, Place),
    /// A subscription must be told of a gap; then it goes on behind the place.
    Gap(Arc<Subscriber>, Gap, Place),
    /// Nothing yet.
    Nothing(Place),
    /// The ring has gone on without it.
    Lost(Vec<Member>),
    /// There is nothing to follow any more.
    Over,
}

impl Hub {
    /// What is in the ring for a subscription behind a place.
    pub(crate) fn read(&mut self, subscriber: &Arc<Subscriber>, after: Place) -> Reading {
        let last = self.table(subscriber.relation).last;
        // Behind its last change there is nothing of the table, however far the ring has gone on.
        let after = if last <= after {
            after.max(self.ring.start())
        } else {
            after
        };
        if !self.ring.covers(after) {
            return Reading::Lost;
        }
        let (changes, place) = self.ring.read(after, |one| one == subscriber.relation);
        if !changes.is_empty() || place < self.ring.head() {
            self.pumps.insert(subscriber.id, place);
            return Reading::Changes(changes, place);
        }
        // A replay may be ahead of the stream, whose changes must not come twice.
        Reading::Joined(self.join(subscriber, place))
    }

    /// What is in the ring for a connection that follows and has dealt with everything up to
    /// `done`. `wake` tells it from one that began later.
    pub(crate) fn follow(&mut self, address: usize, wake: &Arc<Notify>, done: Place) -> Next {
        let Some(connection) = self.connections.get_mut(&address) else {
            return Next::Over;
        };
        let following = connection.following.as_mut();
        let Some(following) = following.filter(|one| Arc::ptr_eq(&one.wake, wake)) else {
            return Next::Over;
        };
        following.reach(done);
        let (place, gap) = (following.place, following.next_gap());
        let members: Vec<Member> = connection.in_mode(Mode::Follows).cloned().collect();
        let last = |member: &Member| Some(self.tables.get(&member.subscriber.relation)?.last);
        let after = match members.iter().filter_map(last).max() {
            Some(last) if last > place => place,
            _ => place.max(self.ring.start()),
        };
        if !self.ring.covers(after) {
            return Next::Lost(members);
        }
        let is_theirs = |relation: u32| {
            let mut members = members.iter();
            members.any(|member| member.subscriber.relation == relation)
        };
        let (mut changes, mut reached) = self.ring.read(after, is_theirs);
        if let Some(gap) = gap {
            changes.retain(|change| change.place <= gap.place);
            reached = reached.min(gap.place.max(after));
            if changes.is_empty() && reached >= gap.place.min(self.ring.head()) {
                return self.gap(address, gap, reached);
            }
        }
        if !changes.is_empty() || reached < self.ring.head() {
            return Next::Changes(members, changes, reached);
        }
        self.rest(address, reached)
    }

    fn gap(&mut self, address: usize, gap: Gap, reached: Place) -> Next {
        let connection = self.connections.get_mut(&address);
        let Some(connection) = connection else {
            return Next::Over;
        };
        if let Some(following) = &mut connection.following {
            following.drop_gap();
        }
        match connection.member(gap.subscriber) {
            Some(member) => Next::Gap(member.subscriber.clone(), gap, reached),
            // It has gone meanwhile.
            None => Next::Changes(Vec::new(), Vec::new(), reached),
        }
    }

    /// A connection has everything that there is.
    fn rest(&mut self, address: usize, reached: Place) -> Next {
        let head = self.ring.head();
        let Some(connection) = self.connections.get_mut(&address) else {
            return Next::Over;
        };
        if !connection.may_go_live(head) {
            return Next::Nothing(reached);
        }
        connection.following = None;
        self.behind.remove(&address);
        let members: Vec<Member> = connection.in_mode(Mode::Follows).cloned().collect();
        for member in members {
            self.go_live(&member.subscriber);
        }
        Next::Over
    }
}
