//! Keeps cached schemas and statement metadata fresh.
//!
//! Each tick reads change markers in the control database: one for each database, and one for the
//! roles. The markers cost little. They show which definitions and roles may have changed.
//!
//! A check of a database compares its definitions, which may need a login. A database with an event
//! trigger sends notifications about definitions. It is checked after a notification. It is also
//! checked after [`MAX_TICKS_WITHOUT_CHECK`] ticks if its marker has changed. Any other database is
//! checked in a tick if its schemas are in use and its marker has changed.
//!
//! Roles belong to the cluster, so one comparison serves all databases. The roles are compared only
//! if their marker has changed, because a comparison may take long.

mod check;
mod last_check;
mod listen;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_catalog::load::{self, ChangeMarker, ChangeMarkers, Roles, RolesChange};
use tidegate_catalog::{CatalogCache, DdlVisibility};
use tidegate_feed::Feed;
use tidegate_server::Probe;
use tidegate_service::ServiceConnections;
use tidegate_sql::{BoxFuture, DatabaseName};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::pool::UserPool;
use check::{Checked, Reason, check, check_options};
use last_check::LastCheck;
use listen::{ListenerEvent, listen};

/// The polling interval. It is short enough that a change takes effect within a second.
const TICK: Duration = Duration::from_millis(400);
/// The number of ticks from one check of roles to the next. It is low enough that a change takes
/// effect within a second.
const TICKS_PER_ROLE_CHECK: u32 = 2;
/// The number of ticks from one check of a database to the next, if its change marker has changed
/// and no notification arrives. It is lower than the number of ticks after which the catalog cache
/// regards a comparison as outdated. After that time, a request would have to compare the
/// definitions itself.
const MAX_TICKS_WITHOUT_CHECK: u32 = 50;
/// The largest number of databases that are checked at the same time.
const CONCURRENT_CHECKS: usize = 4;
/// The number of ticks without a statement after which a database counts as unused. The node then
/// stops listening to it, unless the schemas of the database are still watched. The ticks take half
/// a minute. The time is not shorter, because the first statement in an unused database costs a
/// login and a comparison of all definitions.
const UNUSED_AFTER_TICKS: u32 = 75;
/// Some databases are polled only because no service connection is free to listen to them. This is
/// the maximum number of these databases that are polled in one tick. The databases that have
/// waited longest come first. The number is small, because there may be hundreds of these databases
/// and each poll may need a login. Five polls a second take PostgreSQL about a twentieth of a core.
const POLLS_WITHOUT_CONNECTION: usize = 2;

/// The state of a database that is watched or in which users have run statements recently.
#[derive(Default)]
struct DatabaseState {
    /// The task that listens to the database. Dropping the set ends the task.
    listener: JoinSet<()>,
    /// Whether the database sends notifications about definitions.
    visibility: DdlVisibility,
    /// Whether listening failed only because no service connection is free.
    no_connection: bool,
    /// Whether a check is running.
    busy: bool,
    /// The reason for another check after the running one; `None` if no other check is needed.
    again: Option<Reason>,
    ticks_since_check: u32,
    /// The change marker and the duration of the most recent check.
    last_check: LastCheck,
}

/// Watches the databases in use while [`run`](Self::run) is polled.
pub(crate) struct CatalogWatch {
    catalogs: Arc<CatalogCache>,
    control: Arc<ServiceConnections>,
    users: UserPool,
    /// The feed, whose captures may have to be renewed after a change of a definition.
    feed: Option<Feed>,
    /// For each database, the number of statements that users have run in it, and the number of
    /// ticks since this number changed.
    used: HashMap<DatabaseName, (u64, u32)>,
    states: HashMap<DatabaseName, DatabaseState>,
    checks: JoinSet<Checked>,
    permits: Arc<Semaphore>,
    /// The change markers of the cluster and of the watched databases, which are read in each tick;
    /// `None` if they were not needed or could not be read.
    markers: Option<ChangeMarkers>,
    /// The change marker and the duration of the most recent comparison of roles.
    last_role_check: LastCheck,
    /// The roles and memberships at the time of the most recent comparison of roles.
    roles: Option<Roles>,
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
            markers: None,
            last_role_check: LastCheck::default(),
            roles: None,
            ticks: 0,
            event_sender,
            events,
        }
    }

    /// Checks databases and roles at every tick and handles notifications, until the future is
    /// dropped.
    pub(crate) async fn run(mut self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.tick().await,
                Some((database, event)) = self.events.recv() => self.handle(database, &event),
                Some(done) = self.checks.join_next() => match done {
                    Ok(checked) => self.checked(&checked),
                    Err(error) => tracing::error!(%error, "catalog watch failed"),
                },
            }
        }
    }

    async fn tick(&mut self) {
        self.catalogs.tick();
        let watched: HashSet<_> = self.catalogs.watched().into_iter().collect();
        let used = self.update_used();
        self.states
            .retain(|database, _| watched.contains(database) || used.contains(database));
        self.markers = self.read_markers(&watched).await;
        let roles_changed = self.have_roles_changed().await;
        let failing: HashSet<_> = self.catalogs.failing().into_iter().collect();
        for database in watched.union(&used) {
            let (control, events) = (&self.control, &self.event_sender);
            let state = self.states.entry(database.clone()).or_insert_with(|| {
                let mut state = DatabaseState::default();
                let listening = listen(control.clone(), database.clone(), events.clone());
                state.listener.spawn(listening);
                state
            });
            state.ticks_since_check += 1;
            // The visibility is set again in each tick, because the catalogs ignore it until a
            // request has used a schema of the database.
            self.catalogs.set_visibility(database, state.visibility);
        }
        let polled = self.to_poll(&watched);
        for database in watched {
            if roles_changed || failing.contains(&database) {
                self.check(database, Reason::Roles);
            } else if polled.contains(&database) {
                self.check(database, Reason::Due);
            } else if self.is_current(&database) {
                self.catalogs.unchanged(&database);
            }
        }
    }

    /// Reads the change markers of the cluster and of `databases`. Returns `None` if no database is
    /// watched and no user has a connection. Also returns `None` if the control database does not
    /// respond; the checks that follow report this error.
    async fn read_markers(&self, databases: &HashSet<DatabaseName>) -> Option<ChangeMarkers> {
        if databases.is_empty() && !self.users.is_used() {
            return None;
        }
        load::change_markers(&*self.control, databases, &check_options())
            .await
            .ok()
    }

    fn marker(&self, database: &DatabaseName) -> Option<ChangeMarker> {
        self.markers.as_ref().map(|markers| markers.of(database))
    }

    /// Whether a database is unchanged since its most recent check.
    fn is_current(&self, database: &DatabaseName) -> bool {
        match (self.states.get(database), self.marker(database)) {
            (Some(state), Some(marker)) => !state.busy && state.last_check.is_current(&marker),
            _ => false,
        }
    }

    /// The watched databases that are due to be checked in this tick.
    fn to_poll(&self, watched: &HashSet<DatabaseName>) -> HashSet<DatabaseName> {
        let is_notified = |state: &DatabaseState| state.visibility == DdlVisibility::Always;
        let states = watched
            .iter()
            .filter_map(|database| Some((database, self.states.get(database)?)));
        let unnotified = states.clone().filter(|(_, state)| !is_notified(state));
        let unnotified = u32::try_from(unnotified.count()).unwrap_or(u32::MAX);
        let is_due = |(database, state): &(&DatabaseName, &DatabaseState)| {
            let Some(marker) = self.marker(database) else {
                return true;
            };
            if is_notified(state) {
                state.ticks_since_check >= MAX_TICKS_WITHOUT_CHECK
                    && !state.last_check.is_current(&marker)
            } else {
                state.last_check.is_due(&marker, unnotified)
            }
        };
        let (no_connection, mut polled): (Vec<_>, HashSet<_>) = {
            let (few, all): (Vec<_>, Vec<_>) = states
                .filter(is_due)
                .partition(|(_, state)| state.no_connection);
            let all = all.into_iter().map(|(database, _)| database.clone());
            (few, all.collect())
        };
        polled.extend(longest_waiting(no_connection));
        polled
    }

    /// The databases in which statements have run recently. Must be called exactly once in each
    /// tick, because each call counts as an idle tick of the databases in which nothing ran.
    fn update_used(&mut self) -> HashSet<DatabaseName> {
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

    /// Whether roles or memberships have changed; new roles do not count. Also `true` if roles
    /// could not be read. Closes connections of roles that can no longer log in.
    ///
    /// Roles belong to the cluster, so the event trigger of a database does not report them. Roles
    /// are read only after their marker has changed, because reading thousands of roles takes
    /// milliseconds.
    async fn have_roles_changed(&mut self) -> bool {
        self.ticks = self.ticks.wrapping_add(1);
        if !self.ticks.is_multiple_of(TICKS_PER_ROLE_CHECK)
            || self.states.is_empty() && !self.users.is_used()
        {
            return false;
        }
        // Without markers, it is unknown whether roles have changed, so they count as changed. All
        // watched databases are then checked. If the control database does not respond, these
        // checks report the error.
        let Some(marker) = self.markers.as_ref().map(|markers| markers.roles.clone()) else {
            return true;
        };
        if !self.last_role_check.is_due(&marker, 1) {
            return self.users.check_open_logins().await.is_err();
        }
        self.last_role_check.begin(marker);
        let began = Instant::now();
        let compared = self.compare_roles().await;
        self.last_role_check.end(began.elapsed());
        compared.unwrap_or_else(|_| {
            self.last_role_check.fail();
            true
        })
    }

    async fn compare_roles(&mut self) -> Result<bool, tidegate_catalog::Error> {
        self.users.check_logins().await?;
        let before = self.roles.as_ref();
        let (roles, change) = load::roles(&*self.control, before, &check_options()).await?;
        self.roles = Some(roles);
        if let RolesChange::Added { after } = change {
            // A new role changes nothing for existing roles, so no database is checked.
            self.catalogs.roles_added(after);
        }
        Ok(change == RolesChange::Changed)
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
            // A check with the reason `Due` is not repeated if the database sends no notifications,
            // because the next tick polls such a database anyway.
            if reason != Reason::Due || state.visibility == DdlVisibility::Always {
                state.again = state.again.max(Some(reason));
            }
            return;
        }
        state.busy = true;
        match &self.markers {
            // After a notification, the marker is not recorded. The check may rely on an earlier
            // comparison by a request, which may not have seen all changes up to this marker.
            _ if reason == Reason::Reported => {}
            Some(markers) => state.last_check.begin(markers.of(&database)),
            None => state.last_check.fail(),
        }
        let (catalogs, users) = (self.catalogs.clone(), self.users.clone());
        let permits = self.permits.clone();
        self.checks
            .spawn(check(catalogs, users, permits, (database, reason)));
    }

    fn checked(&mut self, checked: &Checked) {
        if let Some(state) = self.states.get_mut(&checked.database) {
            state.busy = false;
            state.last_check.end(checked.took);
            if !checked.is_ok {
                state.last_check.fail();
            }
            if let Some(reason) = state.again.take() {
                self.check(checked.database.clone(), reason);
            }
        }
    }
}

/// The [`POLLS_WITHOUT_CONNECTION`] databases that have waited longest for a check.
fn longest_waiting(mut states: Vec<(&DatabaseName, &DatabaseState)>) -> Vec<DatabaseName> {
    states.sort_unstable_by_key(|(database, state)| {
        (std::cmp::Reverse(state.ticks_since_check), *database)
    });
    let next = states.into_iter().take(POLLS_WITHOUT_CONNECTION);
    next.map(|(database, _)| database.clone()).collect()
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
