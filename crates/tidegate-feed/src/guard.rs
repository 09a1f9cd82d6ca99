//! Looks after a database's feed at intervals: rights, the retention window, what nobody needs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tidegate_sql::RoleName;
use tidegate_sql::log::LogPosition;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, warn};

use crate::database::{Capture, Database};
use crate::error::{Error, Result};
use crate::pace::AGAIN;
use crate::queue::Ended;
use crate::rights::{self, Answer, Rights};
use crate::subscriber::Subscriber;

/// Checks rights again and again, until it is aborted.
pub(crate) async fn rights(database: Arc<Database>) {
    let mut tick = interval(database.settings.recheck);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick.tick().await;
    let mut checked = HashMap::new();
    loop {
        tick.tick().await;
        recheck(&database, &mut checked).await;
    }
}

/// A role and a table.
type Group = (RoleName, u32);

/// How many tables are asked about at once.
const TABLES: usize = 200;

/// Asks once for each role and some of its tables, however many subscriptions there are.
async fn recheck(database: &Database, checked: &mut HashMap<Group, Instant>) {
    let mut roles: HashMap<RoleName, HashMap<u32, Vec<Arc<Subscriber>>>> = HashMap::new();
    for subscriber in database.subscribers() {
        let tables = roles.entry(subscriber.login.role.clone()).or_default();
        tables
            .entry(subscriber.relation)
            .or_default()
            .push(subscriber);
    }
    checked.retain(|(role, table), _| {
        let tables = roles.get(role);
        tables.is_some_and(|tables| tables.contains_key(table))
    });
    for (role, tables) in roles {
        let login = tables.values().flatten().next();
        let Some(login) = login.map(|subscriber| subscriber.login.clone()) else {
            continue;
        };
        let all: Vec<u32> = tables.keys().copied().collect();
        for some in all.chunks(TABLES) {
            let answers = rights::ask(&*database.executor, &login, some).await;
            for (relation, answer) in answers {
                let last = checked
                    .entry((role.clone(), relation))
                    .or_insert_with(Instant::now);
                apply(database, &tables[&relation], answer.into_result(), last).await;
            }
        }
    }
}

/// How many roles are asked for at once after a table was touched.
const ROLES: usize = 8;

/// A table was touched: reads anew what all who are subscribed to it may see. Rights belong to the
/// columns and not to their names, and policies may be others. Gives the columns of its primary key,
/// where there is somebody as whom to ask.
pub(crate) async fn touched(database: &Database, relation: u32) -> Option<Arc<[Box<str>]>> {
    let mut roles: HashMap<RoleName, Vec<Arc<Subscriber>>> = HashMap::new();
    for subscriber in database.describe(relation) {
        let role = subscriber.login.role.clone();
        roles.entry(role).or_default().push(subscriber);
    }
    // PostgreSQL describes a table again for little, and to every stream: most know all of it.
    let stamp = if roles.is_empty() {
        None
    } else {
        let stamp = rights::stamp(&*database.executor, &database.name, relation).await;
        stamp.ok().filter(|stamp| !stamp.is_empty())
    };
    let mut primary = None;
    let mut stale = Vec::new();
    for subscribers in roles.into_values() {
        match &stamp {
            Some(stamp) if are_checked(&subscribers, stamp).await => {
                let first = subscribers.first();
                primary = first.map(|first| first.rights.lock().primary.clone());
            }
            _ => stale.push(subscribers),
        }
    }
    stream::iter(stale)
        .map(|subscribers| renew(database, relation, subscribers))
        .buffer_unordered(ROLES)
        .fold(primary, |known, primary| {
            std::future::ready(primary.or(known))
        })
        .await
}

async fn are_checked(subscribers: &[Arc<Subscriber>], stamp: &str) -> bool {
    for subscriber in subscribers {
        if !subscriber.is_checked(stamp).await {
            return false;
        }
    }
    true
}

/// Reads rights and policies anew for the subscriptions of one role. Where it cannot be asked, those
/// end whose rows somebody has to judge; for the others the checks at intervals go on.
async fn renew(
    database: &Database,
    relation: u32,
    subscribers: Vec<Arc<Subscriber>>,
) -> Option<Arc<[Box<str>]>> {
    let first = subscribers.first()?;
    let (attempts, pause) = AGAIN;
    for attempt in 0..=attempts {
        let answers = rights::ask(&*database.executor, &first.login, &[relation]).await;
        let answer = answers.into_values().next().unwrap_or(Answer::NoTable);
        if !matches!(answer, Answer::Restless | Answer::Failed(_)) {
            let mut now = Instant::now();
            let rights = answer.into_result();
            let primary = rights.as_ref().ok().map(|rights| rights.primary.clone());
            apply(database, &subscribers, rights, &mut now).await;
            return primary;
        }
        if attempt < attempts {
            sleep(pause).await;
        }
    }
    warn!(role = %first.login.role, relation, "policies could not be read again");
    for subscriber in subscribers.iter().filter(|one| one.judge.is_some()) {
        subscriber.end(Ended::NotAllowed);
        database.detach(subscriber);
    }
    None
}

/// Ends or renews a role's subscriptions to a table.
async fn apply(
    database: &Database,
    subscribers: &[Arc<Subscriber>],
    rights: Result<Arc<Rights>>,
    last: &mut Instant,
) {
    if rights.is_ok() || !database.stream.borrow().live {
        *last = Instant::now();
    }
    // A role that cannot be asked, such as one that may not log in any more.
    let silent = last.elapsed() > database.settings.unchecked;
    for subscriber in subscribers {
        let unknown = silent.then_some(Ended::NotAllowed);
        if let Some(why) = verdict(&rights, subscriber).or(unknown) {
            let role = &subscriber.login.role;
            debug!(%role, relation = subscriber.relation, ?why, "a subscription ends");
            subscriber.end(why);
            database.detach(subscriber);
        } else if let Ok(rights) = &rights
            && let (Some(policy), Some(judge)) = (&rights.policy, &subscriber.judge)
        {
            judge.renew(policy, &rights.stamp).await;
            *subscriber.rights.lock() = rights.clone();
        } else if let Ok(rights) = &rights {
            *subscriber.rights.lock() = rights.clone();
        }
    }
    if let (Err(error), Some(first)) = (rights, subscribers.first()) {
        let role = &first.login.role;
        warn!(%role, relation = first.relation, %error, "rights could not be checked");
    }
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
        // Nobody judges its rows, and now somebody must.
        Ok(rights) if rights.policy.is_some() && subscriber.judge.is_none() => {
            Some(Ended::Changed {
                problem: "row level security applies to the table now".to_owned(),
            })
        }
        Err(Error::NoTable) => Some(Ended::NoTable),
        // The role may not even log in.
        Err(Error::Rights(error)) if matches!(**error, tidegate_sql::Error::NoDatabase) => {
            Some(Ended::NotAllowed)
        }
        // A table may be changed while it is asked about; what stays unknown ends by time.
        Ok(_) | Err(_) => None,
    }
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
