//! Whether tables stand as they were captured. Somebody may take one out of the capture, or drop
//! the key by which its old rows are known, so that its writers are refused; the log tells neither.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::log::{Demand, LogError, LogPosition};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info, warn};

use crate::database::{Capture, Database};
use crate::look;
use crate::question::{TextRow, ask_once, is_true, text};
use crate::queue::Ended;
use crate::recapture;
use crate::stamps;

/// Work is followed by so many times as much rest: definitions may change one upon the other.
const REST: u32 = 2;

/// Looks again and again, and when somebody says that a definition has changed, until it is
/// aborted.
pub(crate) async fn watch(database: Arc<Database>) {
    let mut tick = interval(database.settings.standing);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch {
        database: database.clone(),
        seen: HashMap::new(),
        busy: HashSet::new(),
        mending: JoinSet::new(),
    };
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = database.redefined.notified() => {}
            Some(done) = watch.mending.join_next() => {
                match done {
                    Ok(table) => drop(watch.busy.remove(&table)),
                    Err(_) => watch.busy.clear(),
                }
                continue;
            }
        }
        let begin = Instant::now();
        if let Err(error) = watch.look().await {
            debug!(%error, "it could not be looked at how tables stand");
        }
        sleep(begin.elapsed() * REST).await;
    }
}

struct Watch {
    database: Arc<Database>,
    seen: HashMap<u32, Seen>,
    /// The tables that are being mended.
    busy: HashSet<u32>,
    mending: JoinSet<u32>,
}

/// How a table stood when it was last looked at.
struct Seen {
    /// As it was captured then.
    changes: bool,
    since: LogPosition,
    /// What stood for that.
    words: Vec<Box<str>>,
}

/// How a table stands.
struct Standing {
    table: u32,
    inserts: Vec<Box<str>>,
    changes: Vec<Box<str>>,
    /// Nobody who writes to it is refused.
    accepts: bool,
}

impl Standing {
    fn read(row: &TextRow) -> Option<Self> {
        let words = |at| {
            let words = text(row, at);
            let words = words.split(',').filter(|word| !word.is_empty());
            words.map(Into::into).collect()
        };
        Some(Self {
            table: text(row, 0).parse().ok()?,
            inserts: words(1),
            changes: words(2),
            accepts: is_true(row, 3),
        })
    }

    /// What stands for the changes that are demanded.
    fn words(&self, demand: &Demand) -> &[Box<str>] {
        if demand.changes {
            &self.changes
        } else {
            &self.inserts
        }
    }
}

impl Watch {
    async fn look(&mut self) -> tidegate_sql::Result<()> {
        if !self.database.stream.borrow().live {
            return Ok(());
        }
        let found = Arc::new(look::look(&self.database).await?);
        self.database.found.send_replace(found.clone());
        let captured = &found.captures;
        self.seen.retain(|table, _| captured.contains_key(table));
        for standing in found.standing.iter().filter_map(Standing::read) {
            let table = standing.table;
            let mending = match captured.get(&table) {
                Some(capture) => self.flaw(capture, &standing),
                // Nobody needs it here; its writers are in need all the same.
                None => (!standing.accepts).then_some(Flaw::Refuses),
            };
            if let Some(flaw) = mending
                && self.busy.insert(table)
            {
                let database = self.database.clone();
                self.mending.spawn(async move {
                    mend(&database, table, flaw).await;
                    table
                });
            }
        }
        Ok(())
    }

    /// What is wrong with a table.
    fn flaw(&mut self, capture: &Capture, standing: &Standing) -> Option<Flaw> {
        let demand = &capture.demand;
        let words = standing.words(demand);
        let (changes, since) = (demand.changes, capture.captured.since);
        let known = self.seen.get(&standing.table);
        let known = known.filter(|seen| (seen.changes, seen.since) == (changes, since));
        let stays = known.is_none_or(|seen| seen.words.iter().any(|word| words.contains(word)));
        if capture.lost || words.is_empty() || !stays {
            // Until it has been captured anew.
            self.database.lose(standing.table, since);
            self.seen.remove(&standing.table);
            return Some(Flaw::Missing);
        }
        let words = words.to_vec();
        let seen = Seen {
            changes,
            since,
            words,
        };
        self.seen.insert(standing.table, seen);
        (!standing.accepts).then_some(Flaw::Refuses)
    }
}

/// What is wrong with the capture of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// Changes may be missing.
    Missing,
    /// Old rows are known by nothing, so that writers are refused.
    Refuses,
}

/// Whether nothing stands for the capture of a table, as far as that can be seen.
pub(crate) async fn is_missing(database: &Database, capture: &Capture) -> bool {
    let table = capture.demand.relation;
    let list = stamps::table_list(&[table]);
    let Ok(rows) = ask_once(database, database.log.standing(), &[&list]).await else {
        return true;
    };
    let mut standing = rows.iter().filter_map(Standing::read);
    let known = standing.find(|standing| standing.table == table);
    known.is_some_and(|standing| standing.words(&capture.demand).is_empty())
}

/// Captures a table anew. What fails is tried again with the next look.
async fn mend(database: &Database, table: u32, flaw: Flaw) {
    info!(database = %database.name, table, ?flaw, "a table is captured anew");
    let outcome = recapture(database, table, flaw).await;
    match outcome {
        Ok(()) => {}
        // The publications, or whatever else every table needs: all begins anew.
        Err(LogError::Gone) => database.reopen.notify_one(),
        Err(error @ (LogError::Unsupported(_) | LogError::NotAllowed { .. })) => {
            give_up(database, table, &error);
        }
        Err(error) => debug!(table, %error, "a table could not be captured anew"),
    }
}

async fn recapture(database: &Database, table: u32, flaw: Flaw) -> Result<(), LogError> {
    let turn = database.turn(table);
    let _turn = turn.lock().await;
    let _capturing = database.capturing.read().await;
    let known = database.captures.lock().get(&table).copied();
    let Some(known) = known else {
        return spare(database, table, flaw).await;
    };
    if flaw == Flaw::Missing && !known.lost {
        // Somebody else has captured it anew meanwhile.
        return Ok(());
    }
    recapture::renew(database, known, known.demand)
        .await
        .map(drop)
}

/// Helps the writers of a table that nobody needs here: another node may need it.
async fn spare(database: &Database, table: u32, flaw: Flaw) -> Result<(), LogError> {
    if flaw != Flaw::Refuses {
        return Ok(());
    }
    let demand = Demand {
        relation: table,
        changes: true,
        old_rows: false,
        patience: Duration::ZERO,
    };
    match database.log.capture(&database.name, &demand).await {
        Err(LogError::Gone) => Err(LogError::Gone),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A table cannot give any more what is demanded of it: those end who need it. Those who need its
/// INSERTs go on, if these can be captured, which the next look finds out.
pub(crate) fn give_up(database: &Database, table: u32, error: &LogError) {
    let problem = error.to_string();
    let ends_all = {
        let mut captures = database.captures.lock();
        let known = captures.get_mut(&table);
        let demand = known.map(|known| &mut known.demand);
        let demand = demand.filter(|demand| demand.changes);
        let ends_all = demand.is_none();
        if let Some(demand) = demand {
            (demand.changes, demand.old_rows) = (false, false);
        } else {
            captures.remove(&table);
        }
        ends_all
    };
    let mut subscribers = database.subscribers();
    subscribers.retain(|subscriber| subscriber.relation == table);
    let named = subscribers.first().map(|one| &one.name);
    let name = named.map(|(schema, name)| format!("{schema}.{name}"));
    warn!(
        database = %database.name, relation = table, table = name, %error,
        "a table is not captured any more"
    );
    for subscriber in subscribers {
        if ends_all || subscriber.operations.need_changes() {
            subscriber.end(Ended::Changed {
                problem: problem.clone(),
            });
            database.detach(&subscriber);
        }
    }
}
