//! The subscriptions of one connection. Events of all subscriptions of a connection are delivered
//! in the order of the commits.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::dispatch::subscriber::Subscriber;
use crate::event::cursor::EventPosition;
use crate::event::item::Resync;

/// A connection's subscriptions to a database.
#[derive(Default)]
pub(crate) struct ConnectionState {
    pub(crate) members: Vec<ConnectionSubscriber>,
    /// Set while the connection reads the ring at its own pace. The reason is that its queue was
    /// full, that PostgreSQL has to apply row level security for one of its subscriptions, or that
    /// a replay has taken one of its subscriptions ahead of the stream.
    pub(crate) lagging: Option<LaggingState>,
}

#[derive(Clone)]
pub(crate) struct ConnectionSubscriber {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) mode: DeliveryMode,
    /// While the subscription is not live, only changes after this position are delivered. The
    /// subscription has already received earlier changes, or began after them.
    pub(crate) since: EventPosition,
    /// Gaps that end at or before this position are not reported to the subscription, because it
    /// already got a report of them or began after them.
    pub(crate) complete_from: EventPosition,
    /// The reason for a gap that is to be reported when the replay has ended; `None` without a gap.
    pub(crate) missed: Option<Resync>,
}

/// How changes reach a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryMode {
    /// The live reader pushes the changes.
    Live,
    /// The reader of the lagging connection delivers the changes, for all lagging subscriptions of
    /// the connection.
    Lagging,
    /// A task replays older changes for this subscription alone, until it has caught up with its
    /// connection.
    Replaying,
}

/// The state of a lagging connection's reader.
pub(crate) struct LaggingState {
    /// The reader has processed all changes up to this position.
    pub(crate) position: EventPosition,
    /// Wakes the reader, and identifies it.
    pub(crate) wake: Arc<Notify>,
    /// Whether a new stream has set `position`. If so, the next call of [`Self::reach`] must not
    /// overwrite `position`, because that call reports what was read before the new stream.
    restarted: bool,
    /// Gaps that are reported when the connection has read up to their positions.
    gaps: VecDeque<PendingGap>,
}

/// A gap that is not reported yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingGap {
    /// Changes before this position may be missing.
    pub(crate) position: EventPosition,
    /// The id of the subscription.
    pub(crate) subscriber: u64,
    pub(crate) reason: Resync,
}

impl ConnectionState {
    pub(crate) fn member(&mut self, id: u64) -> Option<&mut ConnectionSubscriber> {
        let mut members = self.members.iter_mut();
        members.find(|member| member.subscriber.id == id)
    }

    pub(crate) fn in_mode(
        &self,
        mode: DeliveryMode,
    ) -> impl Iterator<Item = &ConnectionSubscriber> {
        self.members
            .iter()
            .filter(move |member| member.mode == mode)
    }

    /// Whether all lagging subscriptions may become live after the connection has read up to
    /// `head`: none of them needs row level security, and none has already received changes after
    /// `head`.
    pub(crate) fn may_go_live(&self, head: EventPosition) -> bool {
        let may =
            |member: &ConnectionSubscriber| member.subscriber.rls.is_none() && member.since <= head;
        self.in_mode(DeliveryMode::Lagging).all(may)
    }
}

impl LaggingState {
    /// The state of a connection that starts to lag after a position.
    pub(crate) fn starting_after(position: EventPosition) -> Self {
        Self {
            position,
            wake: Arc::default(),
            restarted: false,
            gaps: VecDeque::new(),
        }
    }

    /// Records that the connection has processed everything up to a position. Does nothing if a new
    /// stream has set another position since the previous call.
    pub(crate) fn reach(&mut self, position: EventPosition) {
        if !std::mem::take(&mut self.restarted) {
            self.position = position;
        }
    }

    /// Records that a new stream starts at a position, which may be before the current position.
    /// Removes the pending gaps, because every subscription gets a gap for the new stream.
    pub(crate) fn restart(&mut self, position: EventPosition) {
        self.position = position;
        self.restarted = true;
        self.gaps.clear();
    }

    /// Adds a gap, and wakes the reader.
    pub(crate) fn push_gap(&mut self, gap: PendingGap) {
        self.gaps.push_back(gap);
        self.wake.notify_one();
    }

    /// The first of the gaps. It must be reported before any change after its position.
    pub(crate) fn next_gap(&self) -> Option<PendingGap> {
        self.gaps.front().copied()
    }

    pub(crate) fn pop_gap(&mut self) {
        self.gaps.pop_front();
    }
}
