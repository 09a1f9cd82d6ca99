//! The change feed of a node.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::log::{ChangeLog, Demand, LogStart};
use tidegate_sql::{DatabaseName, Executor, Login};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::warn;

use crate::change::Operations;
use crate::cursor::Cursor;
use crate::database::{Database, Entering};
use crate::error::{Error, Result};
use crate::policy::Judge;
use crate::predicate::Predicate;
use crate::queue::{Ended, Outbox};
use crate::rights::Rights;
use crate::rights_loader::RightsLoader;
use crate::selection::Selection;
use crate::settings::Settings;
use crate::status::DatabaseStatus;
use crate::subscriber::Subscriber;
use crate::{
    admission, attributes, demand, guard, letters, partitions, recapture, standing, worker,
};

/// Hands the changes of databases to subscribers.
#[derive(Clone)]
pub struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    log: Arc<dyn ChangeLog>,
    executor: Arc<dyn Executor>,
    rights: Arc<RightsLoader>,
    settings: Settings,
    databases: Mutex<HashMap<DatabaseName, Running>>,
    /// One judge for each role and table, so that each image is judged once.
    judges: Mutex<HashMap<(Login, u32), Weak<Judge>>>,
}

/// A database's feed with its tasks, which stop when it is dropped.
struct Running {
    database: Arc<Database>,
    _tasks: JoinSet<()>,
}

/// What somebody subscribes to.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who: rights and row level security are this role's.
    pub login: Login,
    /// What the connection calls the subscription; it stands at each delivery.
    pub tag: u64,
    /// The table's number in `pg_class`.
    pub relation: u32,
    /// Which operations.
    pub operations: Operations,
    /// What events show.
    pub selection: Selection,
    /// Which rows; all when absent.
    pub predicate: Option<Predicate>,
    /// The place to go on behind.
    pub after: Option<Cursor>,
}

/// A subscription; it ends when this is dropped.
pub struct Subscription {
    database: Arc<Database>,
    subscriber: Arc<Subscriber>,
}

impl Feed {
    /// A feed that reads `log` and asks `executor` what roles may see. Connects nowhere until
    /// somebody subscribes. Its methods must be called on a tokio runtime.
    pub fn new(log: Arc<dyn ChangeLog>, executor: Arc<dyn Executor>, settings: Settings) -> Self {
        Self {
            shared: Arc::new(Shared {
                log,
                rights: Arc::new(RightsLoader::new(executor.clone(), &settings)),
                executor,
                settings,
                databases: Mutex::default(),
                judges: Mutex::default(),
            }),
        }
    }

    /// Subscribes a connection. When this returns, the first thing in the connection's queue for
    /// the subscription is [`crate::Item::Acknowledged`]: every later commit is delivered.
    ///
    /// # Errors
    /// Why the subscription makes no sense, is not allowed, or cannot be had now.
    pub async fn subscribe(&self, outbox: &Outbox, request: Request) -> Result<Subscription> {
        let deadline = Instant::now() + self.shared.settings.patience;
        loop {
            let attempt = self.attempt(outbox, request.clone(), deadline);
            if let Some(subscription) = attempt.await? {
                return Ok(subscription);
            }
        }
    }

    /// Nothing when a definition has come through the log meanwhile, so that rights may have been
    /// read before it.
    async fn attempt(
        &self,
        outbox: &Outbox,
        mut request: Request,
        deadline: Instant,
    ) -> Result<Option<Subscription>> {
        let loader = &self.shared.rights;
        let rights = loader
            .load(&request.login, request.relation, deadline)
            .await?;
        let (columns, demand) = self.demand(&request, &rights)?;
        let entering = self.database(&request);
        let database = entering.0.clone();
        let described = database.described();
        if let Some(predicate) = &mut request.predicate {
            letters::learn(&database, request.relation, predicate).await?;
        }
        database.live(deadline).await?;
        let since = admission::capture(&database, demand, deadline).await?;
        if outbox.is_closed() {
            return Err(Error::Closed);
        }
        let from = admission::place(&database, request.after, since, deadline).await;
        let judge = rights.policy.as_ref();
        let judge = judge.map(|_| self.judge(&request.login, request.relation, &rights));
        let subscriber = Arc::new(Subscriber {
            id: database.next_id(),
            tag: request.tag,
            login: request.login,
            relation: request.relation,
            name: (rights.schema.clone(), rights.name.clone()),
            operations: request.operations,
            selection: Arc::new(request.selection),
            predicate: request.predicate,
            columns,
            old_rows: demand.old_rows,
            outbox: outbox.clone(),
            meter: database.meter.clone(),
            judge,
            rights: Mutex::new(rights.clone()),
            over: AtomicBool::new(false),
            turn: AtomicU64::new(0),
        });
        admission::refit(&database, &subscriber, deadline).await?;
        if !database.attach(&subscriber, from, described) {
            return Ok(None);
        }
        if database.stream.borrow().stopped {
            database.detach(&subscriber);
            return Err(Error::Unavailable(None));
        }
        Ok(Some(Subscription {
            database,
            subscriber,
        }))
    }

    /// Checks the columns, and says what the log must hold.
    fn demand(&self, request: &Request, rights: &Rights) -> Result<(Vec<Box<str>>, Demand)> {
        let mut columns: Vec<Box<str>> = request.selection.names().map(Into::into).collect();
        columns.extend(
            request
                .predicate
                .iter()
                .flat_map(Predicate::names)
                .map(Into::into),
        );
        columns.sort_unstable();
        columns.dedup();
        let operations = request.operations;
        let demand = Demand {
            relation: request.relation,
            changes: operations.need_changes(),
            old_rows: demand::needs_old_rows(operations, &columns, rights)?,
            patience: self.shared.settings.patience,
        };
        Ok((columns, demand))
    }

    /// The feed of a database, started by its first subscriber. One that comes back may need what
    /// was before this process: then the memory is filled from as far back as there is.
    fn database(&self, request: &Request) -> Entering {
        let mut databases = self.shared.databases.lock();
        let name = &request.login.database;
        if let Some(running) = databases.get(name) {
            return Entering::new(running.database.clone());
        }
        let database = Arc::new(Database::new(
            name.clone(),
            self.shared.log.clone(),
            self.shared.executor.clone(),
            self.shared.settings.clone(),
        ));
        let first = match request.after {
            Some(_) => LogStart::Earliest,
            None => LogStart::Now,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(worker::run(database.clone(), first));
        tasks.spawn(guard::rights(database.clone()));
        tasks.spawn(partitions::watch(database.clone()));
        tasks.spawn(standing::watch(database.clone()));
        tasks.spawn(recapture::tell(database.clone()));
        tasks.spawn(attributes::watch(database.clone()));
        let shared = Arc::downgrade(&self.shared);
        let retire = move |database: &Arc<Database>| retire(&shared, database);
        tasks.spawn(guard::window(database.clone(), retire));
        let running = Running {
            database: database.clone(),
            _tasks: tasks,
        };
        databases.insert(name.clone(), running);
        Entering::new(database)
    }

    /// The judge of a role and a table, with the policies of these rights. One that is busy, and may
    /// have older policies, is left to those who have it.
    fn judge(&self, login: &Login, relation: u32, rights: &Rights) -> Arc<Judge> {
        let mut judges = self.shared.judges.lock();
        judges.retain(|_, judge| judge.strong_count() > 0);
        let key = (login.clone(), relation);
        let known = judges.get(&key).and_then(Weak::upgrade);
        if let Some(judge) = known.filter(|judge| judge.try_renew(rights)) {
            return judge;
        }
        let executor = self.shared.executor.clone();
        let judge = Arc::new(Judge::new(executor, login.clone(), rights));
        judges.insert(key, Arc::downgrade(&judge));
        judge
    }

    /// Ends everything: subscribers are told, streams are closed; what is kept of the log stays,
    /// so that they can go on elsewhere.
    pub fn stop(&self) {
        for (_, running) in self.shared.databases.lock().drain() {
            running.database.stream.send_modify(|state| {
                state.live = false;
                state.stopped = true;
            });
            running.database.end(&Ended::Stopped);
        }
    }

    /// Says that a definition of a database has changed: it is looked at once whether its tables
    /// stand as they were captured, as it is at intervals.
    pub fn redefined(&self, database: &DatabaseName) {
        if let Some(running) = self.shared.databases.lock().get(database) {
            running.database.redefined.notify_one();
        }
    }

    /// How each database's feed is.
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

/// Stops the feed of a database that nobody needs, and gives back what it had taken there. Says
/// whether it did.
fn retire(shared: &Weak<Shared>, database: &Arc<Database>) -> bool {
    let Some(shared) = shared.upgrade() else {
        return true;
    };
    let running = {
        let mut databases = shared.databases.lock();
        let mine = |running: &Running| Arc::ptr_eq(&running.database, database);
        if !databases.get(&database.name).is_some_and(mine) || !database.is_idle() {
            return false;
        }
        database.stream.send_modify(|state| state.stopped = true);
        databases.remove(&database.name)
    };
    // Not one of the tasks that end with it.
    tokio::spawn(async move {
        let Some(running) = running else {
            return;
        };
        let (log, name) = (running.database.log.clone(), running.database.name.clone());
        let released = log.release(&name, &[]).await;
        // Its stream is closed with it, which PostgreSQL has to notice.
        drop(running);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let abandoned = log.abandon(&name).await;
        for outcome in [released, abandoned] {
            if let Err(error) = outcome {
                warn!(database = %name, %error, "something of the feed stays in the database");
            }
        }
    });
    true
}

impl Subscription {
    /// Whether nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.subscriber.is_over()
    }

    /// Cuts the connection of the subscription, whose peer takes nothing: the last thing in its
    /// queue is [`Ended::SlowConsumer`] then.
    pub fn cut(&self) {
        self.subscriber.cut();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriber.over.store(true, Ordering::Release);
        self.database.detach(&self.subscriber);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("subscriber", &self.subscriber.id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}
