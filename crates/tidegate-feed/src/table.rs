//! A table's subscriptions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_sql::RoleName;
use tidegate_sql::log::LogIdentity;
use tokio::sync::Notify;

use crate::change::{Change, Event, Operation, Operations, Row};
use crate::cursor::{Cursor, Place};
use crate::index::{Index, Live};
use crate::queue::{Ended, Refused, Resync};
use crate::selection::{Encoder, Image, Selection, Unshowable};
use crate::shape::Shape;
use crate::subscriber::{Outcome, Subscriber, changed, gap, passes};

/// The subscriptions to one table.
#[derive(Default)]
pub(crate) struct Table {
    shape: Option<Arc<Shape>>,
    /// Those that take each change as it comes.
    live: HashMap<u64, Arc<Subscriber>>,
    by_operation: [Index; 3],
    plans: Vec<Plan>,
    /// Tells the connections of those that follow that there is something.
    followers: Vec<(u64, Arc<Notify>)>,
    /// How many changes were handed out.
    turn: u64,
    /// The place of its last change; when nothing is known, as far as something may have been.
    pub(crate) last: Place,
    /// The roles of its subscriptions whose rights depend on roles; `None` when that is not known.
    pub(crate) roles: Option<Arc<[RoleName]>>,
    /// The last transactions that emptied it, by the lower halves of their numbers.
    pub(crate) emptied: VecDeque<u32>,
}

/// How many transactions are known that emptied a table.
const EMPTIED: usize = 64;

/// What equal selections share.
struct Plan {
    selection: Arc<Selection>,
    users: usize,
    encoder: Option<Encoder>,
}

/// What happens to an event that was encoded for one and may be needed by others.
type Encoded = Option<Result<Image, Unshowable>>;

impl Table {
    /// A table without subscriptions, of which changes up to a place may have come.
    pub(crate) fn new(last: Place) -> Self {
        Self {
            last,
            ..Self::default()
        }
    }

    /// Takes a subscription in; it gets every change from now on.
    ///
    /// # Errors
    /// The table has changed so that the subscription makes no sense.
    pub(crate) fn insert(&mut self, subscriber: Arc<Subscriber>) -> Result<(), Ended> {
        let shape = self.shape.clone();
        let plan = self.plan(&subscriber.selection)?;
        let placed = match &shape {
            Some(shape) => subscriber.place(shape)?,
            None => None,
        };
        self.plans[plan].users += 1;
        let live = Live {
            subscriber: subscriber.clone(),
            placed,
            plan,
        };
        for operation in subscriber.operations.iter() {
            self.by_operation[operation as usize].insert(&live, shape.as_deref());
        }
        self.live.insert(subscriber.id, subscriber);
        Ok(())
    }

    fn plan(&mut self, selection: &Arc<Selection>) -> Result<usize, Ended> {
        let same = |plan: &Plan| plan.users > 0 && plan.selection == *selection;
        if let Some(at) = self.plans.iter().position(same) {
            return Ok(at);
        }
        let encoder = match &self.shape {
            Some(shape) => Some(Encoder::new(selection, shape).map_err(|error| changed(&error))?),
            None => None,
        };
        let plan = Plan {
            selection: selection.clone(),
            users: 0,
            encoder,
        };
        let free = self.plans.iter().position(|plan| plan.users == 0);
        match free {
            Some(at) => self.plans[at] = plan,
            None => self.plans.push(plan),
        }
        Ok(free.unwrap_or(self.plans.len() - 1))
    }

    /// Has a subscription's connection told of changes.
    pub(crate) fn follow(&mut self, id: u64, wake: Arc<Notify>) {
        self.followers.push((id, wake));
    }

    /// No more.
    pub(crate) fn unfollow(&mut self, id: u64) {
        self.followers.retain(|(follower, _)| *follower != id);
    }

    /// Whether a subscription has got its part of the last change.
    pub(crate) fn has_handed_out_to(&self, subscriber: &Subscriber) -> bool {
        subscriber.turn.load(Ordering::Relaxed) == self.turn
    }

    /// Whether a subscription fits what was last known of the table.
    pub(crate) fn fits(&self, subscriber: &Subscriber) -> bool {
        self.shape
            .as_ref()
            .is_none_or(|shape| subscriber.bind(shape).is_ok())
    }

    /// Forgets what the table was like: the log tells it with the next change.
    pub(crate) fn unshape(&mut self) {
        self.shape = None;
    }

    /// Lets a subscription go.
    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        if self.live.remove(&subscriber.id).is_none() {
            return;
        }
        for operation in subscriber.operations.iter() {
            self.by_operation[operation as usize].remove(subscriber);
        }
        let same = |plan: &&mut Plan| plan.users > 0 && plan.selection == subscriber.selection;
        if let Some(plan) = self.plans.iter_mut().find(same) {
            plan.users -= 1;
        }
    }

    /// The table is like this from here on: everything is readied again, and what makes no sense
    /// any more ends.
    pub(crate) fn reshape(&mut self, shape: &Arc<Shape>) {
        if self
            .shape
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, shape))
        {
            return;
        }
        let before = self.shape.replace(shape.clone());
        // PostgreSQL describes a table again whenever anything about it was touched.
        if before.is_some_and(|before| before.is_like(shape)) {
            return;
        }
        self.plans.clear();
        self.by_operation = Default::default();
        for (_, subscriber) in std::mem::take(&mut self.live) {
            if subscriber.is_over() {
                continue;
            }
            if let Err(why) = self.insert(subscriber.clone()) {
                subscriber.end(why);
            }
        }
    }

    /// Hands a change to those that it matters to. Returns those whose queue is full: their
    /// connections have to go on by themselves, with this change.
    pub(crate) fn dispatch(&mut self, change: &Change, log: LogIdentity) -> Vec<Arc<Subscriber>> {
        let mut behind = Vec::new();
        let mut gone = Vec::new();
        let cursor = Cursor::new(log, change.place);
        self.turn += 1;
        let turn = self.turn;
        let mut push = |subscriber: &Arc<Subscriber>, outcome: Outcome| {
            let Some(item) = outcome.item(cursor) else {
                return;
            };
            // The index may name it more than once.
            if subscriber.turn.load(Ordering::Relaxed) == turn {
                return;
            }
            if subscriber.is_over() {
                gone.push(subscriber.clone());
                return;
            }
            match subscriber.push(item) {
                Ok(()) => subscriber.turn.store(turn, Ordering::Relaxed),
                Err(Refused::Full) => behind.push(subscriber.clone()),
                Err(Refused::Closed) => gone.push(subscriber.clone()),
            }
        };
        match &change.event {
            Event::Truncated => {
                self.emptied.truncate(EMPTIED - 1);
                self.emptied.push_front(change.transaction);
                for subscriber in self.live.values() {
                    push(subscriber, Outcome::Gap(Resync::Truncated));
                }
            }
            Event::Row(operation, tuple) => {
                let row = Row {
                    shape: &change.shape,
                    tuple,
                };
                self.row(*operation, row, &mut push);
            }
        }
        for subscriber in &gone {
            self.remove(subscriber);
        }
        for (_, wake) in &self.followers {
            wake.notify_one();
        }
        behind
    }

    fn row(
        &self,
        operation: Operation,
        row: Row<'_>,
        push: &mut dyn FnMut(&Arc<Subscriber>, Outcome),
    ) {
        let mut rows: Vec<Encoded> = Vec::new();
        self.by_operation[operation as usize].each(row, &mut |live| {
            let outcome = match passes(live.placed.as_deref(), row) {
                Some(false) => return,
                None => Outcome::Gap(Resync::Incomplete),
                Some(true) => {
                    if rows.is_empty() {
                        rows.resize_with(self.plans.len(), || None);
                    }
                    let shown = rows[live.plan].get_or_insert_with(|| {
                        let encoder = self.plans[live.plan].encoder.as_ref();
                        encoder.ok_or(Unshowable::Absent)?.encode(row)
                    });
                    match shown {
                        Ok(image) => Outcome::Event(operation, image.clone()),
                        Err(error) => gap(error, row.shape),
                    }
                }
            };
            push(&live.subscriber, outcome);
        });
    }
}

impl Operations {
    /// Whether UPDATE or DELETE is among them.
    pub(crate) fn need_changes(self) -> bool {
        self.has(Operation::Update) || self.has(Operation::Delete)
    }
}
