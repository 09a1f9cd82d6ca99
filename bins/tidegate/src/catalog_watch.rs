//! Keeps cached schemas and statement metadata fresh.
//!
//! A database with an event trigger notifies of definitions. It is checked after a notification,
//! after a change of roles, and after [`MAX_TICKS_WITHOUT_CHECK`]. Any other database is polled at
//! every tick while its schemas are in use.

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

/// The polling interval. With it, a change takes effect within a second.
const TICK: Duration = Duration::from_millis(400);
/// The number of ticks between two checks of roles. With it, a change takes effect within a second.
const TICKS_PER_ROLE_CHECK: u32 = 2;
/// A database is checked after this many ticks even without a notification.
const MAX_TICKS_WITHOUT_CHECK: u32 = 100;
/// The number of databases that are checked at the same time.
const CONCURRENT_CHECKS: usize = 4;
/// The task sleeps this many times as long as a check took, so that a large catalog does not keep
/// PostgreSQL busy.
const PAUSE_FACTOR: u32 = 2;
/// The deadline of one check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
/// Listening to a database ends after this many ticks without a statement.
const UNUSED_AFTER_TICKS: u32 = 60;
/// How long a database without an event trigger is polled before listening is tried again.
const LISTEN_RETRY: Duration = Duration::from_mins(1);
/// How long a database is polled before listening is tried again, if no service connection is free.
const NO_CONNECTION_RETRY: Duration = Duration::from_secs(10);
/// The number of databases that are polled in a tick because no service connection is free to
/// listen. Those that have waited longest come first. There may be hundreds of them, and each poll
/// may need a login: five polls a second take PostgreSQL about a twentieth of a core.
const POLLS_WITHOUT_CONNECTION: usize = 2;

/// An event that the listener of a database reports.
enum ListenerEvent {
    /// Listening has begun, or a definition has changed.
    Notified,
    /// The database does not send notifications, or no longer does.
    Silent,
    /// No service connection is free for listening.
    NoConnection,
}

/// Why a database is checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// The database notified of a definition. Reported definitions are counted, so a request may
    /// have checked the database already.
    Reported,
    /// The database may have changed in a way that is not counted.
    Due,
}

/// The state of a database in use.
#[derive(Default)]
struct DatabaseState {
    /// The task that listens. Dropping the set ends it.
    listener: JoinSet<()>,
    /// Whether the database notifies of definitions.
    visibility: DdlVisibility,
    /// Whether listening failed only because no service connection is free.
    no_connection: bool,
    /// Whether a check is running.
    busy: bool,
    again: Option<Reason>,
    /// How many ticks have passed since the last check.
    ticks_since_check: u32,
}

/// Watches the databases in use.
pub(crate) struct CatalogWatch {
    catalogs: Arc<CatalogCache>,
    control: Arc<ServiceConnections>,
    users: UserPool,
    /// The feed, whose captures may have to be renewed after a definition.
    feed: Option<Feed>,
    /// For each database the number of statements that have run, and the ticks since that number
    /// changed.
    used: HashMap<DatabaseName, (u64, u32)>,
    states: HashMap<DatabaseName, DatabaseState>,
    checks: JoinSet<DatabaseName>,
    permits: Arc<Semaphore>,
    /// The last snapshot of the cluster, and the roles and memberships at that time.
    roles: Option<(String, Roles)>,
    ticks: u32,
    event_sender: mpsc::UnboundedSender<(DatabaseName, ListenerEvent)>,
    events: mpsc::UnboundedReceiver<(DatabaseName, ListenerEvent)>,
}

impl CatalogWatch {
    pub(crate) fn new(
        catalogs: Arc<CatalogCache>,
        control: Arc<ServiceConnections>,
        users: UserPool,
        feed: Option<Feed>,
    ) -> Self {
        let (event_sender, events) = mpsc::unbounded_channel();
        Self {
            catalogs,
            control,
            users,
            feed,
            used: HashMap::new(),
            states: HashMap::new(),
            checks: JoinSet::new(),
            permits: Arc::new(Semaphore::new(CONCURRENT_CHECKS)),
            roles: None,
            ticks: 0,
            event_sender,
            events,
        }
    }

    /// Runs until the future is dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick().await,
                Some((database, event)) = self.events.recv() => self.handle(database, &event),
                Some(done) = self.checks.join_next() => match done {
                    Ok(database) => self.checked(&database),
                    Err(error) => tracing::error!(%error, "catalog watch failed"),
                },
            }
        }
    }

    async fn tick(&mut self) {
        self.catalogs.tick();
        let watched: HashSet<_> = self.catalogs.watched().into_iter().collect();
        let used = self.used();
        self.states
            .retain(|database, _| watched.contains(database) || used.contains(database));
        let roles_changed = self.have_roles_changed().await;
        let failing: HashSet<_> = self.catalogs.failing().into_iter().collect();
        let no_connection = self.to_poll_without_connection(&watched);
        for database in watched.union(&used).cloned() {
            let state = self.states.entry(database.clone()).or_insert_with(|| {
                let mut state = DatabaseState::default();
                let listening = listen(
                    self.control.clone(),
                    database.clone(),
                    self.event_sender.clone(),
                );
                state.listener.spawn(listening);
                state
            });
            state.ticks_since_check += 1;
            // Repeated at each tick, because the catalog may have begun to use the database since
            // the last one.
            self.catalogs.set_visibility(&database, state.visibility);
            let is_polled = state.visibility != DdlVisibility::Always
                && (!state.no_connection || no_connection.contains(&database));
            let is_due = is_polled
                || roles_changed
                || state.ticks_since_check >= MAX_TICKS_WITHOUT_CHECK
                || failing.contains(&database);
            if is_due && watched.contains(&database) {
                self.check(database, Reason::Due);
            }
        }
    }

    /// The databases without a listening connection that are polled in this tick.
    fn to_poll_without_connection(&self, watched: &HashSet<DatabaseName>) -> HashSet<DatabaseName> {
        let states = self.states.iter();
        let mut no_connection: Vec<_> = states
            .filter(|(database, state)| state.no_connection && watched.contains(*database))
            .map(|(database, state)| (std::cmp::Reverse(state.ticks_since_check), database))
            .collect();
        no_connection.sort_unstable();
        let next = no_connection.into_iter().take(POLLS_WITHOUT_CONNECTION);
        next.map(|(_, database)| database.clone()).collect()
    }

    /// The databases in which statements have run recently.
    fn used(&mut self) -> HashSet<DatabaseName> {
        let known = std::mem::take(&mut self.used);
        for (database, count) in self.users.databases() {
            let idle_ticks = match known.get(&database) {
                Some((before, idle_ticks)) if *before == count => idle_ticks.saturating_add(1),
                None if count == 0 => UNUSED_AFTER_TICKS,
                _ => 0,
            };
            self.used.insert(database, (count, idle_ticks));
        }
        let used = self
            .used
            .iter()
            .filter(|(_, (_, idle_ticks))| *idle_ticks < UNUSED_AFTER_TICKS);
        used.map(|(database, _)| database.clone()).collect()
    }

    /// Whether roles or memberships have changed, other than by new roles. Also closes connections
    /// of roles that can no longer log in.
    ///
    /// Roles belong to the cluster, so the event trigger of a database does not report them. They
    /// are polled. The poll reads them only if a transaction has ended since the last poll, because
    /// reading thousands of roles takes milliseconds.
    async fn have_roles_changed(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_add(1);
        let mut states = self.states.values();
        let is_notified = states.any(|state| state.visibility == DdlVisibility::Always);
        if !self.ticks.is_multiple_of(TICKS_PER_ROLE_CHECK)
            || !(is_notified || self.users.is_used())
        {
            return false;
        }
        // After an error all databases are checked. These checks report the error.
        let Ok(snapshot) = self.users.check_logins().await else {
            return true;
        };
        let seen = |(before, _): &(String, Roles)| *before == snapshot;
        if !is_notified || self.roles.as_ref().is_some_and(seen) {
            return false;
        }
        let before = self.roles.as_ref().map(|(_, roles)| roles);
        let Ok((roles, change)) = load::roles(&*self.control, before, &check_options()).await
        else {
            return true;
        };
        self.roles = Some((snapshot, roles));
        if let RolesChange::Added { after } = change {
            // A new user changes nothing for other users, so no database is checked.
            self.catalogs.roles_added(after);
        }
        change == RolesChange::Changed
    }

    fn handle(&mut self, database: DatabaseName, event: &ListenerEvent) {
        let Some(state) = self.states.get_mut(&database) else {
            return;
        };
        state.visibility = match event {
            ListenerEvent::Notified => DdlVisibility::Always,
            ListenerEvent::Silent | ListenerEvent::NoConnection => DdlVisibility::Never,
        };
        let had_no_connection = std::mem::replace(
            &mut state.no_connection,
            matches!(event, ListenerEvent::NoConnection),
        );
        self.catalogs.set_visibility(&database, state.visibility);
        let reports = state.visibility == DdlVisibility::Always;
        if reports {
            self.users.redefined(&database);
            if let Some(feed) = &self.feed {
                feed.schema_changed(&database);
            }
        }
        if reports {
            self.check(database, Reason::Reported);
        } else if !(had_no_connection && matches!(event, ListenerEvent::NoConnection)) {
            self.check(database, Reason::Due);
        }
    }

    fn check(&mut self, database: DatabaseName, reason: Reason) {
        let Some(state) = self.states.get_mut(&database) else {
            return;
        };
        state.ticks_since_check = 0;
        if state.busy {
            if state.visibility == DdlVisibility::Always {
                state.again = state.again.max(Some(reason));
            }
            return;
        }
        state.busy = true;
        let (catalogs, users) = (self.catalogs.clone(), self.users.clone());
        let permits = self.permits.clone();
        self.checks
            .spawn(check(catalogs, users, permits, (database, reason)));
    }

    fn checked(&mut self, database: &DatabaseName) {
        if let Some(state) = self.states.get_mut(database) {
            state.busy = false;
            if let Some(reason) = state.again.take() {
                self.check(database.clone(), reason);
            }
        }
    }
}

fn check_options() -> QueryOptions {
    QueryOptions {
        deadline: Some((Instant::now() + CHECK_TIMEOUT).into_std()),
        ..QueryOptions::default()
    }
}

/// Checks one database and reloads the schemas that have changed. Returns after a pause that grows
/// with the duration of the check.
async fn check(
    catalogs: Arc<CatalogCache>,
    users: UserPool,
    permits: Arc<Semaphore>,
    (database, reason): (DatabaseName, Reason),
) -> DatabaseName {
    let took = {
        let _permit = permits.acquire().await;
        let began = Instant::now();
        let watched = match reason {
            Reason::Reported => catalogs.catch_up(&database, &check_options()).await,
            Reason::Due => catalogs.watch(&database, &check_options()).await,
        };
        // The catalog logs a failure, and `/readyz` shows it.
        if let Ok(WatchOutcome::Changed) = watched {
            tracing::debug!(%database, took = ?began.elapsed(), "catalog reloaded after a change");
            // A reported definition has already invalidated the caches. Invalidating them again
            // would make the next request compare the database once more.
            if reason == Reason::Due {
                users.redefined(&database);
            }
        }
        began.elapsed()
    };
    tokio::time::sleep(took * PAUSE_FACTOR).await;
    database
}

/// Listens to a database. Reports its notifications, and why listening ended.
async fn listen(
    control: Arc<ServiceConnections>,
    database: DatabaseName,
    event_sender: mpsc::UnboundedSender<(DatabaseName, ListenerEvent)>,
) {
    loop {
        let on_notification = |_| {
            // The receiver is dropped before the listener when the watch ends.
            drop(event_sender.send((database.clone(), ListenerEvent::Notified)));
        };
        let end = control.ddl_notifications(&database, on_notification).await;
        if matches!(end, Ok(ListenEnd::LimitReached)) {
            drop(event_sender.send((database.clone(), ListenerEvent::NoConnection)));
            tokio::time::sleep(NO_CONNECTION_RETRY).await;
            continue;
        }
        if !matches!(end, Ok(ListenEnd::NoTrigger)) {
            tracing::debug!(%database, ?end, "listening for definitions ended; polling the database");
        }
        drop(event_sender.send((database.clone(), ListenerEvent::Silent)));
        tokio::time::sleep(LISTEN_RETRY).await;
    }
}

/// Reports on `/readyz` whether every cached schema is current. The probe is not essential, because
/// the node continues with the schemas that it has.
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
