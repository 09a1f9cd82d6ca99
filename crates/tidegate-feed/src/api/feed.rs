//! The change feed of a node.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_changelog::{ChangeLog, LogStart};
use tidegate_sql::{DatabaseName, Executor};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use crate::access::privilege_loader::PrivilegeLoader;
use crate::access::rls_evaluators::RlsEvaluators;
use crate::api::status::DatabaseStatus;
use crate::api::subscribe::{self, CheckedRequest};
use crate::api::subscription::{SubscribeRequest, Subscription};
use crate::capture::{health, partitions, recapture};
use crate::database::database_feed::{DatabaseFeed, SubscribeGuard};
use crate::dispatch::queue::EventSender;
use crate::error::Result;
use crate::event::item::Ended;
use crate::read::live;
use crate::settings::FeedSettings;
use crate::watch::{composite_types, recheck, retention};

/// Delivers the changes of databases to subscriptions.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    log: Arc<dyn ChangeLog>,
    executor: Arc<dyn Executor>,
    privileges: Arc<PrivilegeLoader>,
    rls_evaluators: RlsEvaluators,
    settings: FeedSettings,
    databases: Mutex<HashMap<DatabaseName, RunningFeed>>,
}

impl Shared {
    /// Divides the memory for changes equally among the rings of all databases.
    fn share_memory(&self, databases: &HashMap<DatabaseName, RunningFeed>) {
        let share = self.settings.ring_share(databases.len());
        for running in databases.values() {
            running.database.hub.set_ring_bytes(share);
        }
    }
}

/// The feed of a database with its tasks. Dropping this value stops the tasks.
struct RunningFeed {
    database: Arc<DatabaseFeed>,
    _tasks: JoinSet<()>,
}

impl Feed {
    /// Creates a feed that reads `log`, and queries privileges through `executor`. The feed
    /// connects to a database at the first subscription there. Its methods must be called within a
    /// tokio runtime.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        executor: Arc<dyn Executor>,
        settings: FeedSettings,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                log,
                privileges: Arc::new(PrivilegeLoader::new(executor.clone(), &settings)),
                rls_evaluators: RlsEvaluators::new(executor.clone()),
                executor,
                settings,
                databases: Mutex::default(),
            }),
        }
    }

    /// Subscribes a connection to the changes of a table. On return, [`crate::Item::Acknowledged`]
    /// has been pushed to the connection's queue, and every later commit will be delivered.
    ///
    /// # Errors
    ///
    /// If the role may not subscribe, if the table cannot be captured as requested, or if the
    /// subscription cannot be started before the timeout.
    pub async fn subscribe(
        &self,
        sender: &EventSender,
        request: SubscribeRequest,
    ) -> Result<Subscription> {
        let deadline = Instant::now() + self.shared.settings.subscribe_timeout;
        loop {
            let attempt = self.try_subscribe(sender, request.clone(), deadline);
            if let Some(subscription) = attempt.await? {
                return Ok(subscription);
            }
        }
    }

    /// Tries once to subscribe. Returns `None` if the change log reported a new table definition
    /// during the attempt. The calling function then tries again.
    async fn try_subscribe(
        &self,
        sender: &EventSender,
        request: SubscribeRequest,
        deadline: Instant,
    ) -> Result<Option<Subscription>> {
        let shared = &self.shared;
        let name = request.login.database.clone();
        let definition_count = self.definition_count(&name);
        let privileges = shared
            .privileges
            .load(&request.login, request.relation, deadline)
            .await?;
        // The request is checked before the database's feed is started, so that a refused request
        // does not start the feed.
        let timeout = shared.settings.subscribe_timeout;
        let start = match request.after {
            Some(_) => LogStart::Earliest,
            None => LogStart::Now,
        };
        let checked = CheckedRequest::new(request, privileges, timeout, deadline)?;
        let guard = self.database(name, start);
        subscribe::subscribe(
            &guard.0,
            &shared.rls_evaluators,
            sender,
            checked,
            definition_count,
        )
        .await
    }

    /// The number of table definitions that the change log of a database has reported. It is 0 if
    /// the feed of the database does not run, because a feed starts to count at 0.
    fn definition_count(&self, name: &DatabaseName) -> u64 {
        let databases = self.shared.databases.lock();
        databases
            .get(name)
            .map_or(0, |running| running.database.hub.definition_count())
    }

    /// Returns the feed of a database. Starts the feed if it does not run; the feed then reads the
    /// change log from `start`. The first subscription of a database may resume and need changes
    /// from before this process started. In this case `start` must be the earliest position in the
    /// change log, so that the ring contains these changes.
    fn database(&self, name: DatabaseName, start: LogStart) -> SubscribeGuard {
        let mut databases = self.shared.databases.lock();
        if let Some(running) = databases.get(&name) {
            return SubscribeGuard::new(running.database.clone());
        }
        let database = Arc::new(DatabaseFeed::new(
            name.clone(),
            self.shared.log.clone(),
            self.shared.executor.clone(),
            self.shared.settings.clone(),
        ));
        let mut tasks = JoinSet::new();
        tasks.spawn(live::run(database.clone(), start));
        tasks.spawn(recheck::watch(database.clone()));
        tasks.spawn(partitions::watch(database.clone()));
        tasks.spawn(health::watch(database.clone()));
        tasks.spawn(recapture::report_gaps(database.clone()));
        tasks.spawn(composite_types::watch(database.clone()));
        let shared = Arc::downgrade(&self.shared);
        let retire = move |database: &Arc<DatabaseFeed>| retire(&shared, database);
        tasks.spawn(retention::watch(database.clone(), retire));
        let running = RunningFeed {
            database: database.clone(),
            _tasks: tasks,
        };
        databases.insert(name, running);
        self.shared.share_memory(&databases);
        SubscribeGuard::new(database)
    }

    /// Ends all subscriptions and closes the streams. Does not end the retention windows, so that
    /// clients can resume on another node.
    pub fn stop(&self) {
        for (_, running) in self.shared.databases.lock().drain() {
            running.database.stream.update(|state| {
                state.live = false;
                state.stopped = true;
            });
            running.database.hub.end_all(&Ended::Stopped);
        }
    }

    /// Opens broken streams immediately, without waiting for the end of the pause between two
    /// attempts. Call this when PostgreSQL is reachable again.
    pub fn resume(&self) {
        for running in self.shared.databases.lock().values() {
            let stream = &running.database.stream;
            if !stream.is_live() {
                stream.retry_request.notify_one();
            }
        }
    }

    /// Reports that a definition in a database has changed. The catalog is then polled immediately,
    /// and not only at the next interval.
    pub fn schema_changed(&self, database: &DatabaseName) {
        if let Some(running) = self.shared.databases.lock().get(database) {
            running.database.poll_request.notify_one();
        }
    }

    /// The status of each database's feed, sorted by the name of the database.
    pub fn status(&self) -> Vec<DatabaseStatus> {
        let databases = self.shared.databases.lock();
        let mut status: Vec<_> = databases
            .values()
            .map(|running| DatabaseStatus::of(&running.database))
            .collect();
        status.sort_by(|one, other| one.database.as_str().cmp(other.database.as_str()));
        status
    }
}

/// Stops the feed of a database if it has no subscriptions. A background task then removes the
/// objects that the feed has created in the database. Returns `true` if the feed has stopped, or if
/// the [`Feed`] was dropped. Returns `false` if the feed is in use, or if it is no longer the
/// current feed of the database.
fn retire(shared: &Weak<Shared>, database: &Arc<DatabaseFeed>) -> bool {
    let Some(shared) = shared.upgrade() else {
        return true;
    };
    let running = {
        // While this lock is held, no new subscription can get the feed.
        let mut databases = shared.databases.lock();
        let is_this = |running: &RunningFeed| Arc::ptr_eq(&running.database, database);
        if !databases.get(&database.name).is_some_and(is_this) || !database.is_idle() {
            return false;
        }
        database.stream.update(|state| state.stopped = true);
        let running = databases.remove(&database.name);
        shared.share_memory(&databases);
        running
    };
    // The objects are removed in a new task, because the feed's own tasks are aborted when the feed
    // is dropped.
    tokio::spawn(async move {
        let Some(running) = running else {
            return;
        };
        let (log, name) = (running.database.log.clone(), running.database.name.clone());
        let released = log.release(&name, &[]).await;
        // This drop closes the stream. PostgreSQL notices this a moment later, and until then
        // `abandon` does not drop the slot.
        drop(running);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let abandoned = log.abandon(&name).await;
        for outcome in [released, abandoned] {
            if let Err(error) = outcome {
                warn!(database = %name, %error, "could not remove all objects of an idle feed");
            }
        }
    });
    true
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
