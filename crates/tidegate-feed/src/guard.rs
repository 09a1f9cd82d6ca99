//! Looks after a database's feed at intervals: rights, the retention window, what nobody needs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::join_all;
use tidegate_sql::log::LogPosition;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, warn};

use crate::database::{Capture, Database};
use crate::demand;
use crate::error::{Error, Result};
use crate::look::Found;
use crate::pace::AGAIN;
use crate::policy::Judge;
use crate::queue::Ended;
use crate::rights::{Answer, Rights};
use crate::rights_question::{self, Pair};
use crate::stamps;
use crate::subscriber::Subscriber;

/// Checks rights, until it is aborted: those that a look does not confirm are read anew.
pub(crate) async fn rights(database: Arc<Database>) {
    let mut tick = interval(database.settings.recheck);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    let mut found = database.found.subscribe();
    let mut checked: HashMap<Pair, Instant> = HashMap::new();
    loop {
        let mut groups;
        tokio::select! {
            _ = tick.tick() => {
                groups = group(database.subscribers());
                checked.retain(|pair, _| groups.contains_key(pair));
                // A tick is no earlier than the one before, which took a moment.
                let due = database.settings.recheck.mul_f32(0.9);
                groups.retain(|pair, _| checked.get(pair).is_none_or(|last| last.elapsed() >= due));
            }
            Ok(()) = found.changed() => {
                let found = found.borrow_and_update().clone();
                groups = group(database.subscribers());
                groups.retain(|pair, subscribers| {
                    let is_confirmed = is_confirmed(&found, subscribers);
                    if is_confirmed {
                        checked.insert(pair.clone(), Instant::now());
                    }
                    !is_confirmed
                });
            }
        }
        recheck(&database, &groups, &mut checked).await;
    }
}

/// Whether subscriptions of a role to a table have the rights that go with what was found.
fn is_confirmed(found: &Found, subscribers: &[Arc<Subscriber>]) -> bool {
    subscribers.iter().all(|one| {
        let rights = one.rights.lock();
        let known = (&*rights.stamp, &*rights.role_stamp);
        found.stamps(one.relation, &one.login.role) == Some(known)
    })
}

/// The subscriptions of one role to one table.
type Groups = HashMap<Pair, Vec<Arc<Subscriber>>>;

fn group(subscribers: Vec<Arc<Subscriber>>) -> Groups {
    let mut groups = Groups::new();
    for subscriber in subscribers {
        let pair = (subscriber.login.role.clone(), subscriber.relation);
        groups.entry(pair).or_default().push(subscriber);
    }
    groups
}

/// Asks once for each role and table, however many subscriptions there are.
async fn recheck(database: &Database, groups: &Groups, checked: &mut HashMap<Pair, Instant>) {
    let pairs = groups.keys().cloned().collect();
    let answers = rights_question::ask(&*database.executor, &database.name, pairs).await;
    let live = database.stream.borrow().live;
    let apply = |(pair, answer): (Pair, Answer)| {
        let rights = answer.into_result();
        let last = checked.entry(pair.clone()).or_insert_with(Instant::now);
        if rights.is_ok() || !live {
            *last = Instant::now();
        }
        // A role of which PostgreSQL says nothing for long.
        let silent = last.elapsed() > database.settings.unchecked;
        apply(database, &groups[&pair], rights, silent)
    };
    for (rights, judges) in answers.into_iter().filter_map(apply) {
        for judge in judges {
            // The next check of others does not wait for who judges for long.
            if !judge.try_renew(&rights) {
                let rights = rights.clone();
                tokio::spawn(async move { judge.renew(&rights).await });
            }
        }
    }
}

/// A table was touched: reads anew what all who are subscribed to it may see. Rights belong to the
/// columns and not to their names, and policies may be others. Gives the columns of its primary key,
/// where somebody may know them.
pub(crate) async fn touched(database: &Database, relation: u32) -> Option<Arc<[Box<str>]>> {
    let groups = group(database.describe(relation));
    // PostgreSQL describes a table again for little, and to every stream: most know all of it.
    let stamp = if groups.is_empty() {
        None
    } else {
        stamps::of_table(database, relation).await.ok().flatten()
    };
    let mut primary = None;
    let mut stale = Groups::new();
    for (pair, subscribers) in groups {
        match &stamp {
            Some(stamp) if are_checked(&subscribers, stamp).await => {
                let first = subscribers.first();
                primary = first.map(|first| first.rights.lock().primary.clone());
            }
            _ => drop(stale.insert(pair, subscribers)),
        }
    }
    primary.or(renew(database, stale).await)
}

/// Before a change of a table is handed out: reads the rights anew of subscribers whose roles,
/// or the memberships of these, have changed since they were read. The log does not tell that.
pub(crate) async fn check_roles(database: &Database, relation: u32) {
    let roles = database.roles_to_check(relation);
    if roles.is_empty() {
        return;
    }
    // Where PostgreSQL does not answer, all of them are read anew, or end.
    let now = stamps::of_roles(database, &roles).await.unwrap_or_default();
    let is_stale = |one: &Arc<Subscriber>| {
        let stamp = now.get(one.login.role.as_str());
        one.is_stale(stamp.map(|stamp| &**stamp))
    };
    let mut stale = database.subscribers_of(relation);
    stale.retain(is_stale);
    renew(database, group(stale)).await;
}

async fn are_checked(subscribers: &[Arc<Subscriber>], stamp: &str) -> bool {
    for subscriber in subscribers {
        if !subscriber.is_checked(stamp).await {
            return false;
        }
    }
    true
}

/// Reads rights and policies anew. Where PostgreSQL does not say, those end whose rows somebody has
/// to judge; for the others the checks at intervals go on.
async fn renew(database: &Database, mut groups: Groups) -> Option<Arc<[Box<str>]>> {
    let (attempts, pause) = AGAIN;
    let mut primary = None;
    for attempt in 0..=attempts {
        let pairs: Vec<Pair> = groups.keys().cloned().collect();
        if pairs.is_empty() {
            return primary;
        }
        let answers = rights_question::ask(&*database.executor, &database.name, pairs).await;
        let mut renewals: Vec<Renewal> = Vec::new();
        for (pair, answer) in answers {
            if matches!(answer, Answer::Restless | Answer::Failed(_)) {
                continue;
            }
            let rights = answer.into_result();
            let known = rights.as_ref().ok();
            primary = primary.or_else(|| known.map(|rights| rights.primary.clone()));
            let subscribers = groups.remove(&pair).unwrap_or_default();
            renewals.extend(apply(database, &subscribers, rights, false));
        }
        renew_all(renewals).await;
        if attempt < attempts && !groups.is_empty() {
            sleep(pause).await;
        }
    }
    for ((role, relation), subscribers) in groups {
        warn!(%role, relation, "policies could not be read again");
        for subscriber in subscribers.iter().filter(|one| one.judge.is_some()) {
            subscriber.end(Ended::NotAllowed);
            database.detach(subscriber);
        }
    }
    primary
}

/// The policies that judges are to take.
type Renewal = (Arc<Rights>, Vec<Arc<Judge>>);

/// Ends or renews a role's subscriptions to a table. Gives what has to wait for those who judge
/// rows at the moment.
fn apply(
    database: &Database,
    subscribers: &[Arc<Subscriber>],
    rights: Result<Arc<Rights>>,
    silent: bool,
) -> Option<Renewal> {
    let mut judges = Vec::new();
    for subscriber in subscribers {
        let unknown = silent.then_some(Ended::NotAllowed);
        if let Some(why) = verdict(&rights, subscriber).or(unknown) {
            let role = &subscriber.login.role;
            debug!(%role, relation = subscriber.relation, ?why, "a subscription ends");
            subscriber.end(why);
            database.detach(subscriber);
        } else if let Ok(rights) = &rights {
            subscriber.renew(rights);
            database.forget_roles(subscriber.relation);
            judges.extend(subscriber.judge.clone());
        }
    }
    match rights {
        Ok(rights) => Some((rights, judges)),
        Err(error) => {
            if let Some(first) = subscribers.first() {
                let role = &first.login.role;
                warn!(%role, relation = first.relation, %error, "rights could not be checked");
            }
            None
        }
    }
}

/// Has judges take their policies, each when it is done with what it judges.
async fn renew_all(renewals: Vec<Renewal>) {
    let renew = |(rights, judges): Renewal| async move {
        for judge in judges {
            judge.renew(&rights).await;
        }
    };
    join_all(renewals.into_iter().map(renew)).await;
}

/// Whether a subscription must end.
fn verdict(rights: &Result<Arc<Rights>>, subscriber: &Subscriber) -> Option<Ended> {
    match rights {
        Ok(rights) if !rights.may_read(&subscriber.columns) => {
            let gone = subscriber
                .columns
                .iter()
                .find(|name| !rights.columns.iter().any(|column| column.name == **name));
            Some(match gone {
                Some(name) => Ended::Changed {
                    problem: format!("the column `{name}` is gone"),
                },
                None => Ended::NotAllowed,
            })
        }
        Ok(rights) if rights.policy.is_some() => unserved(rights, subscriber),
        Err(Error::NoTable) => Some(Ended::NoTable),
        // The role is gone, or may not even log in.
        Err(Error::NoRole) => Some(Ended::NotAllowed),
        // A table may be changed while it is asked about; what stays unknown ends by time.
        Ok(_) | Err(_) => None,
    }
}

/// Why a subscription cannot go on under policies: nobody judges its rows yet, or they look at more
/// than is captured for it, so that its rows would be left out without a word.
fn unserved(rights: &Rights, subscriber: &Subscriber) -> Option<Ended> {
    let needs = demand::needs_old_rows(subscriber.operations, &subscriber.columns, rights);
    let problem = match needs {
        _ if subscriber.judge.is_none() => "row level security applies to the table now",
        Ok(true) if !subscriber.old_rows => {
            "the policies of the table look at more than is captured for the subscription"
        }
        Err(Error::Unsupported(problem)) => return Some(Ended::Changed { problem }),
        Ok(_) | Err(_) => return None,
    };
    Some(Ended::Changed {
        problem: problem.to_owned(),
    })
}

/// Moves the retention window on, until it is aborted, and retires a database that nobody needs.
pub(crate) async fn window(database: Arc<Database>, retire: impl Fn(&Arc<Database>) -> bool) {
    let mut tick = interval(database.settings.retain);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut samples: VecDeque<(Instant, LogPosition)> = VecDeque::new();
    loop {
        tick.tick().await;
        if !database.subscribers().is_empty() {
            *database.touched.lock() = Instant::now();
        }
        let idle = database.touched.lock().elapsed();
        if idle >= database.settings.linger && retire(&database) {
            return;
        }
        let state = database.stream.borrow().clone();
        if !state.live {
            continue;
        }
        samples.push_back((Instant::now(), state.reached));
        let mut keep = LogPosition::default();
        while let Some((when, position)) = samples.front()
            && when.elapsed() >= database.settings.window
        {
            keep = *position;
            samples.pop_front();
        }
        match database.log.retain(&database.name, keep).await {
            Ok(end) => database
                .meter
                .see_end(end, database.stream.borrow().reached),
            Err(error) => {
                warn!(database = %database.name, %error, "the retention window did not move on");
            }
        }
        let_go(&database).await;
    }
}

/// Lets go of tables that nobody has needed for a while.
async fn let_go(database: &Database) {
    let linger = database.settings.linger;
    let used = || {
        let subscribers = database.subscribers();
        let mut captures = database.captures.lock();
        for subscriber in subscribers {
            if let Some(capture) = captures.get_mut(&subscriber.relation) {
                capture.used = Instant::now();
            }
        }
        captures
    };
    let is_used = |capture: &Capture| capture.used.elapsed() < linger;
    if used().values().all(is_used) {
        return;
    }
    let _alone = database.capturing.write().await;
    // From here on whoever comes finds them not captured, and waits.
    let kept: Vec<u32> = {
        let mut captures = used();
        captures.retain(|_, capture| is_used(capture));
        captures.keys().copied().collect()
    };
    if let Err(error) = database.log.release(&database.name, &kept).await {
        debug!(%error, "tables that nobody needs are still captured");
    }
}
