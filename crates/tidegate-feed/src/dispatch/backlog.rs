//! Reads changes from the ring for replays and for lagging connections.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::decode::change::RowChange;
use crate::dispatch::attachment::LaggingConnection;
use crate::dispatch::connection::{ConnectionSubscriber, DeliveryMode, PendingGap};
use crate::dispatch::hub::Hub;
use crate::dispatch::subscriber::Subscriber;
use crate::event::cursor::EventPosition;

/// The result of a read from the ring for a replay.
pub(crate) enum ReplayRead {
    /// Changes of the subscribed table, and the position up to which they are complete. The list
    /// may be empty.
    Changes(Vec<Arc<RowChange>>, EventPosition),
    /// The ring no longer contains all changes after the position.
    Lost,
    /// The subscription has caught up and has joined the other subscriptions of its connection. The
    /// value is `Some` if the connection lags from now on. The calling function must then start a
    /// reader for the connection.
    Joined(Option<LaggingConnection>),
}

/// The result of a read from the ring for a lagging connection.
pub(crate) enum BacklogRead {
    /// The connection's lagging subscriptions, some changes for them, and the position up to which
    /// the changes are complete.
    Changes(
        Vec<ConnectionSubscriber>,
        Vec<Arc<RowChange>>,
        EventPosition,
    ),
    /// A gap to report to a subscription, and the position up to which the connection has read the
    /// ring.
    Gap(Arc<Subscriber>, PendingGap, EventPosition),
    /// The ring has no new changes for the connection. The position says how far the ring was read.
    CaughtUp(EventPosition),
    /// The ring no longer contains all changes that the connection has not read. The value is the
    /// lagging subscriptions.
    Lost(Vec<ConnectionSubscriber>),
    /// The reader must stop, because the connection was removed, is live again, or has another
    /// reader.
    Ended,
}

/// Reads changes after a position for a replay. If none are left, the subscription joins the other
/// subscriptions of its connection.
pub(crate) fn read_replay(
    hub: &mut Hub,
    subscriber: &Arc<Subscriber>,
    after: EventPosition,
) -> ReplayRead {
    let last_change = hub.table(subscriber.relation).last_change;
    // If the table has not changed after the position, the subscription needs no change that the
    // ring has dropped.
    let after = if last_change <= after {
        after.max(hub.ring.start())
    } else {
        after
    };
    if !hub.ring.covers(after) {
        return ReplayRead::Lost;
    }
    let (changes, position) = hub.ring.read(after, |one| one == subscriber.relation);
    if !changes.is_empty() || position < hub.ring.head() {
        hub.replays.insert(subscriber.id, position);
        return ReplayRead::Changes(changes, position);
    }
    // A replay from the change log may be ahead of the stream. The subscription joins with its own
    // position, so that the stream does not deliver the same changes again.
    ReplayRead::Joined(hub.join_connection(subscriber, position))
}

/// Reads changes for a lagging connection that has processed everything up to `done`. `wake`
/// identifies the reader: a connection that became live and lags again has another reader.
pub(crate) fn read_lagging(
    hub: &mut Hub,
    connection_id: usize,
    wake: &Arc<Notify>,
    done: EventPosition,
) -> BacklogRead {
    let Some(connection) = hub.connections.get_mut(&connection_id) else {
        return BacklogRead::Ended;
    };
    let lagging = connection.lagging.as_mut();
    let Some(lagging) = lagging.filter(|one| Arc::ptr_eq(&one.wake, wake)) else {
        return BacklogRead::Ended;
    };
    lagging.reach(done);
    let (position, gap) = (lagging.position, lagging.next_gap());
    let members: Vec<_> = connection.in_mode(DeliveryMode::Lagging).cloned().collect();
    let last_change = |member: &ConnectionSubscriber| {
        Some(hub.tables.get(&member.subscriber.relation)?.last_change)
    };
    // If none of the tables has changed after the position, the connection needs no change that the
    // ring has dropped.
    let after = match members.iter().filter_map(last_change).max() {
        Some(last_change) if last_change > position => position,
        _ => position.max(hub.ring.start()),
    };
    if !hub.ring.covers(after) {
        return BacklogRead::Lost(members);
    }
    let is_subscribed = |relation: u32| {
        let mut members = members.iter();
        members.any(|member| member.subscriber.relation == relation)
    };
    let (mut changes, mut reached) = hub.ring.read(after, is_subscribed);
    if let Some(gap) = gap {
        // The changes up to the gap are delivered first, then the gap, then the changes after it.
        changes.retain(|change| change.position <= gap.position);
        reached = reached.min(gap.position.max(after));
        if changes.is_empty() && reached >= gap.position.min(hub.ring.head()) {
            return take_gap(hub, connection_id, gap, reached);
        }
    }
    if !changes.is_empty() || reached < hub.ring.head() {
        return BacklogRead::Changes(members, changes, reached);
    }
    caught_up(hub, connection_id, reached)
}

fn take_gap(
    hub: &mut Hub,
    connection_id: usize,
    gap: PendingGap,
    reached: EventPosition,
) -> BacklogRead {
    let Some(connection) = hub.connections.get_mut(&connection_id) else {
        return BacklogRead::Ended;
    };
    if let Some(lagging) = &mut connection.lagging {
        lagging.pop_gap();
    }
    match connection.member(gap.subscriber) {
        Some(member) => BacklogRead::Gap(member.subscriber.clone(), gap, reached),
        // The subscription of the gap has ended in the meantime.
        None => BacklogRead::Changes(Vec::new(), Vec::new(), reached),
    }
}

/// Makes a connection live again after it has read everything, if all its lagging subscriptions may
/// become live.
fn caught_up(hub: &mut Hub, connection_id: usize, reached: EventPosition) -> BacklogRead {
    let head = hub.ring.head();
    let Some(connection) = hub.connections.get_mut(&connection_id) else {
        return BacklogRead::Ended;
    };
    if !connection.may_go_live(head) {
        return BacklogRead::CaughtUp(reached);
    }
    connection.lagging = None;
    hub.lagging.remove(&connection_id);
    let members: Vec<_> = connection.in_mode(DeliveryMode::Lagging).cloned().collect();
    for member in members {
        hub.make_live(&member.subscriber);
    }
    BacklogRead::Ended
}
