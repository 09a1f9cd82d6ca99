//! A connection that reads the ring at its own pace: what its subscriptions are due is judged
//! together and delivered in the order of the commits.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::change::Change;
use crate::connection::Member;
use crate::cursor::{Cursor, Place};
use crate::database::Database;
use crate::hub::Behind;
use crate::pace::{self, Over};
use crate::queue::Item;
use crate::reading::Next;
use crate::subscriber::{Bound, Outcome, Subscriber};

/// Has a connection follow until it is at the end.
pub(crate) fn spawn(database: Arc<Database>, behind: Behind) {
    let follower = Follower {
        database,
        connection: behind.connection,
        wake: behind.wake,
        bounds: HashMap::new(),
    };
    tokio::spawn(follower.run(behind.place));
}

struct Follower {
    database: Arc<Database>,
    connection: usize,
    wake: Arc<Notify>,
    /// What the subscriptions were readied for.
    bounds: HashMap<u64, Option<Bound>>,
}

/// What a subscription is due.
struct Due {
    subscriber: Arc<Subscriber>,
    change: Arc<Change>,
    outcome: Outcome,
}

impl Follower {
    async fn run(mut self, mut place: Place) {
        loop {
            let next = self.database.follow(self.connection, &self.wake, place);
            match next {
                Next::Changes(members, changes, reached) => {
                    let due = self.judge(&members, &changes);
                    self.deliver(due).await;
                    place = reached;
                }
                Next::Gap(subscriber, gap, reached) => {
                    let cursor = self.database.cursor(gap.place);
                    let reason = gap.reason;
                    subscriber.tell(Item::Resync { cursor, reason });
                    place = reached;
                }
                Next::Nothing(reached) => {
                    place = reached;
                    self.wake.notified().await;
                }
                Next::Lost(members) => {
                    for Member { subscriber, .. } in members {
                        subscriber.cut();
                        self.database.detach(&subscriber);
                    }
                }
                Next::Over => return,
            }
        }
    }

    /// What some changes mean, in their order.
    fn judge(&mut self, members: &[Member], changes: &[Arc<Change>]) -> Vec<Due> {
        let mut all = Vec::new();
        let is_there = |id: &u64| members.iter().any(|one| one.subscriber.id == *id);
        self.bounds.retain(|id, _| is_there(id));
        for change in changes {
            for Member {
                subscriber, since, ..
            } in members
            {
                let concerns = subscriber.relation == change.shape.oid && change.place > *since;
                if !concerns || subscriber.is_over() {
                    continue;
                }
                let bound = self.bounds.entry(subscriber.id).or_default();
                match pace::judge(subscriber, bound, change, *since) {
                    Ok(Outcome::Nothing) => {}
                    Ok(outcome) => all.push(Due {
                        subscriber: subscriber.clone(),
                        change: change.clone(),
                        outcome,
                    }),
                    Err(Over) => self.database.detach(subscriber),
                }
            }
        }
        all
    }

    async fn deliver(&self, due: Vec<Due>) {
        let hidden = self.hidden(&due).await;
        let log = self.database.log_identity();
        for (due, hidden) in due.into_iter().zip(hidden) {
            let cursor = Cursor::new(log, due.change.place);
            let Some(item) = due.outcome.item(cursor).filter(|_| !hidden) else {
                continue;
            };
            if pace::push(&due.subscriber, item).await.is_err() {
                self.database.detach(&due.subscriber);
            }
        }
    }

    /// Which of them row level security hides: each judge is asked once, about all that concerns
    /// it.
    async fn hidden(&self, due: &[Due]) -> Vec<bool> {
        let mut hidden = vec![false; due.len()];
        let mut asked: Vec<u64> = Vec::new();
        for one in due {
            let id = one.subscriber.id;
            if one.subscriber.judge.is_none() || asked.contains(&id) {
                continue;
            }
            asked.push(id);
            let theirs = || (0..due.len()).filter(|at| due[*at].subscriber.id == id);
            let changes: Vec<_> = theirs().map(|at| due[at].change.clone()).collect();
            let visible = pace::visible(&one.subscriber, &changes).await;
            if visible.is_err() {
                self.database.detach(&one.subscriber);
            }
            let visible = visible.unwrap_or_else(|Over| vec![false; changes.len()]);
            for (at, visible) in theirs().zip(visible) {
                hidden[at] = !visible;
            }
        }
        hidden
    }
}
