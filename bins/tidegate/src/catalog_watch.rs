//! Keeps fresh what requests work with: schemas, and what is known of statements.
//!
//! A database that tells when a definition changes is looked at when it does, when the cluster's
//! roles have changed, and now and then all the same; any other is looked at with every tick, if
//! its schemas are in use.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::load::{self, Roles, RolesChange};
use tidegate_catalog::{CatalogCache, DdlVisibility, WatchOutcome};
use tidegate_feed::Feed;
use tidegate_server::Probe;
use tidegate_service::{ListenEnd, ServiceConnections};
use tidegate_sql::{BoxFuture, DatabaseName, QueryOptions};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::pool::UserPool;

/// How often databases are compared that do not tell: a change is there within a second.
const TICK: Duration = Duration::from_millis(400);
/// Roles are checked every this many ticks, so that a change takes effect within a second.
const ROLES: u32 = 2;
/// After so many ticks a database is compared although it has told nothing.
const BACKSTOP: u32 = 100;
/// So many databases are compared at a time.
const AT_ONCE: usize = 4;
/// Work on a large catalog is followed by so many times as much rest.
const REST: u32 = 2;
/// A comparison, and loading what has changed, ends within this time or fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// A database in which no statement has run for so many ticks is not listened to.
const USED: u32 = 60;
/// How long a database is polled before it is asked again whether it can tell.
const RETRY: Duration = Duration::from_mins(1);
/// How long a database is polled for which no connection is left to listen on.
const RETRY_ROOM: Duration = Duration::from_secs(10);
/// At most this many databases for which no listening connection is left are polled in a tick, those
/// first that were polled longest ago. There may be hundreds of them, and each poll may need a login:
/// five a second take PostgreSQL about a twentieth of a core.
const CROWDED_POLLS: usize = 2;

/// What happened to a database.
enum Event {
    /// It tells what changes: that it begins to, or a change.
    Told,
    /// It tells nothing (any more).
    Silent,
    /// No connection is left to listen on.
    Crowded,
}

/// Why a database is compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It reported a definition. That is counted, so a request may have compared it already.
    Reported,
    /// Something may have changed that is not counted.
    Due,
}

/// What is known of a database in use.
#[derive(Default)]
struct Place {
    /// Ends the listener with the place.
    listener: JoinSet<()>,
    /// Whether it tells what changes.
    telling: DdlVisibility,
    /// Whether it is not listened to only because no connection is left for that.
    crowded: bool,
    /// Whether it is being looked at, and whether it must be looked at again after that.
    busy: bool,
    again: Option<Reason>,
    /// Ticks since it was looked at.
    quiet: u32,
}

/// Watches the databases in use.
pub(crate) struct CatalogWatch {
    catalogs: Arc<CatalogCache>,
    control: Arc<ServiceConnections>,
    users: UserPool,
    /// Whose tables may have to be captured anew.
    feed: Option<Feed>,
    /// How many statements had run in a database, and how many ticks ago that changed.
    used: HashMap<DatabaseName, (u64, u32)>,
    places: HashMap<DatabaseName, Place>,
    looking: JoinSet<DatabaseName>,
    turns: Arc<Semaphore>,
    /// The last snapshot of the cluster, and its roles and memberships then.
    roles: Option<(String, Roles)>,
    ticks: u32,
    tell: mpsc::UnboundedSender<(DatabaseName, Event)>,
    told: mpsc::UnboundedReceiver<(DatabaseName, Event)>,
}

impl CatalogWatch {
    pub(crate) fn new(
        catalogs: Arc<CatalogCache>,
        control: Arc<ServiceConnections>,
        users: UserPool,
        feed: Option<Feed>,
    ) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        Self {
            catalogs,
            control,
            users,
            feed,
            used: HashMap::new(),
            places: HashMap::new(),
            looking: JoinSet::new(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            roles: None,
            ticks: 0,
            tell,
            told,
        }
    }

    /// Watches for as long as it is polled.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick().await,
                Some((database, event)) = self.told.recv() => self.hear(database, &event),
                Some(done) = self.looking.join_next() => match done {
                    Ok(database) => self.looked(&database),
                    Err(error) => tracing::error!(%error, "catalog watch failed"),
                },
            }
        }
    }

    async fn tick(&mut self) {
        self.catalogs.tick();
        let watched: HashSet<_> = self.catalogs.watched().into_iter().collect();
        let used = self.used();
        self.places
            .retain(|database, _| watched.contains(database) || used.contains(database));
        let roles_changed = self.have_roles_changed().await;
        let failing: HashSet<_> = self.catalogs.failing().into_iter().collect();
        let crowded = self.crowded_to_poll(&watched);
        for database in watched.union(&used).cloned() {
            let place = self.places.entry(database.clone()).or_insert_with(|| {
                let mut place = Place::default();
                let listening = listen(self.control.clone(), database.clone(), self.tell.clone());
                place.listener.spawn(listening);
                place
            });
            place.quiet += 1;
            // Its schemas may have come into use only now.
            self.catalogs.rely(&database, place.telling);
            let is_polled = place.telling != DdlVisibility::Always
                && (!place.crowded || crowded.contains(&database));
            let is_due = is_polled
                || roles_changed
                || place.quiet >= BACKSTOP
                || failing.contains(&database);
            if is_due && watched.contains(&database) {
                self.look(database, Reason::Due);
            }
        }
    }

    /// The databases without a listening connection that are polled in this tick.
    fn crowded_to_poll(&self, watched: &HashSet<DatabaseName>) -> HashSet<DatabaseName> {
        let places = self.places.iter();
        let mut crowded: Vec<_> = places
            .filter(|(database, place)| place.crowded && watched.contains(*database))
            .map(|(database, place)| (std::cmp::Reverse(place.quiet), database))
            .collect();
        crowded.sort_unstable();
        let next = crowded.into_iter().take(CROWDED_POLLS);
        next.map(|(_, database)| database.clone()).collect()
    }

    /// The databases in which statements run.
    fn used(&mut self) -> HashSet<DatabaseName> {
        let known = std::mem::take(&mut self.used);
        for (database, count) in self.users.databases() {
            let quiet = match known.get(&database) {
                Some((before, quiet)) if *before == count => quiet.saturating_add(1),
                None if count == 0 => USED,
                _ => 0,
            };
            self.used.insert(database, (count, quiet));
        }
        let used = self.used.iter().filter(|(_, (_, quiet))| *quiet < USED);
        used.map(|(database, _)| database.clone()).collect()
    }

    /// Returns whether roles or memberships have changed, other than by new roles. Also closes
    /// connections of roles that can no longer log in.
    ///
    /// Roles belong to the cluster, so the event trigger of a database does not report them. They are
    /// polled, and only if a transaction has ended since the last poll, because reading thousands of
    /// roles takes milliseconds.
    async fn have_roles_changed(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_add(1);
        let mut places = self.places.values();
        let told = places.any(|place| place.telling == DdlVisibility::Always);
        if !self.ticks.is_multiple_of(ROLES) || !(told || self.users.is_used()) {
            return false;
        }
        // Whatever is looked at instead will say what is wrong.
        let Ok(snapshot) = self.users.check_logins().await else {
            return true;
        };
        let seen = |(before, _): &(String, Roles)| *before == snapshot;
        if !told || self.roles.as_ref().is_some_and(seen) {
            return false;
        }
        let before = self.roles.as_ref().map(|(_, roles)| roles);
        let Ok((roles, change)) = load::roles(&*self.control, before, &patience()).await else {
            return true;
        };
        self.roles = Some((snapshot, roles));
        if let RolesChange::Added { after } = change {
            // A new user changes nothing for the others: no database is compared for it.
            self.catalogs.roles_added(after);
        }
        change == RolesChange::Changed
    }

    fn hear(&mut self, database: DatabaseName, event: &Event) {
        let Some(place) = self.places.get_mut(&database) else {
            return;
        };
        place.telling = match event {
            Event::Told => DdlVisibility::Always,
            Event::Silent | Event::Crowded => DdlVisibility::Never,
        };
        let was_crowded = std::mem::replace(&mut place.crowded, matches!(event, Event::Crowded));
        self.catalogs.rely(&database, place.telling);
        let reports = place.telling == DdlVisibility::Always;
        if reports {
            self.users.redefined(&database);
            if let Some(feed) = &self.feed {
                feed.schema_changed(&database);
            }
        }
        if reports {
            self.look(database, Reason::Reported);
        } else if !(was_crowded && matches!(event, Event::Crowded)) {
            self.look(database, Reason::Due);
        }
    }

    fn look(&mut self, database: DatabaseName, reason: Reason) {
        let Some(place) = self.places.get_mut(&database) else {
            return;
        };
        place.quiet = 0;
        if place.busy {
            if place.telling == DdlVisibility::Always {
                place.again = place.again.max(Some(reason));
            }
            return;
        }
        place.busy = true;
        let (catalogs, users) = (self.catalogs.clone(), self.users.clone());
        let turns = self.turns.clone();
        self.looking
            .spawn(look(catalogs, users, turns, (database, reason)));
    }

    fn looked(&mut self, database: &DatabaseName) {
        if let Some(place) = self.places.get_mut(database) {
            place.busy = false;
            if let Some(reason) = place.again.take() {
                self.look(database.clone(), reason);
            }
        }
    }
}

fn patience() -> QueryOptions {
    QueryOptions {
        deadline: Some((Instant::now() + PATIENCE).into_std()),
        ..QueryOptions::default()
    }
}

/// Compares one database, loads again what has changed, and rests.
async fn look(
    catalogs: Arc<CatalogCache>,
    users: UserPool,
    turns: Arc<Semaphore>,
    (database, reason): (DatabaseName, Reason),
) -> DatabaseName {
    let took = {
        let _turn = turns.acquire().await;
        let began = Instant::now();
        let watched = match reason {
            Reason::Reported => catalogs.catch_up(&database, &patience()).await,
            Reason::Due => catalogs.watch(&database, &patience()).await,
        };
        // What fails is logged and told by `/readyz`.
        if let Ok(WatchOutcome::Changed) = watched {
            tracing::debug!(%database, took = ?began.elapsed(), "the catalog has changed");
            // A reported definition has invalidated the caches already. If they were invalidated a
            // second time, the next request would compare the database once more.
            if reason == Reason::Due {
                users.redefined(&database);
            }
        }
        began.elapsed()
    };
    tokio::time::sleep(took * REST).await;
    database
}

/// Passes on what a database tells, and that it tells nothing any more.
async fn listen(
    control: Arc<ServiceConnections>,
    database: DatabaseName,
    tell: mpsc::UnboundedSender<(DatabaseName, Event)>,
) {
    loop {
        let said = |_| {
            // Nobody may be watching any more.
            drop(tell.send((database.clone(), Event::Told)));
        };
        let silence = control.ddl_notifications(&database, said).await;
        if matches!(silence, Ok(ListenEnd::NoRoom)) {
            drop(tell.send((database.clone(), Event::Crowded)));
            tokio::time::sleep(RETRY_ROOM).await;
            continue;
        }
        if !matches!(silence, Ok(ListenEnd::NoTrigger)) {
            tracing::debug!(%database, ?silence, "the database tells nothing of its definitions");
        }
        drop(tell.send((database.clone(), Event::Silent)));
        tokio::time::sleep(RETRY).await;
    }
}

/// Whether every schema in use is the newest. The node serves on with what it has.
pub(crate) struct CatalogProbe(pub(crate) Arc<CatalogCache>);

impl Probe for CatalogProbe {
    fn name(&self) -> &'static str {
        "catalog"
    }

    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(self.0.failing().is_empty()))
    }
}
