//! Replicas: standbys that answer reads.
//!
//! A read goes to a replica only if the replica has replayed everything that the read must see. A
//! task for each replica regularly queries up to which position the replica has replayed the WAL.
//! Reads use the position that this task has found, and do not query it themselves. If no replica
//! has replayed enough, or a replica fails, the read runs on the primary.

mod decisions;
mod executor;
mod held_rows;
mod monitor;
mod primary;
mod replica;
mod sessions;
mod transaction;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_sql::{DatabaseName, Error, Login, WalPosition};
use tidegate_wire::Config;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::executor::UserExecutor;
use primary::Primary;
use replica::Replica;
use sessions::Sessions;

pub use decisions::PrimaryDecisions;
pub use executor::ReplicatedExecutor;
pub use replica::ReplicaStatus;

/// The delay before the next attempt, after the primary could not be queried for its position.
const RETRY: Duration = Duration::from_secs(1);

/// The replicas of a cluster, and the position of each session's most recent write.
pub struct Replicas {
    primary: Arc<Primary>,
    list: Vec<Replica>,
    sessions: Sessions,
    /// Counts reads, so that the replicas take turns.
    turn: AtomicUsize,
    tasks: Vec<AbortHandle>,
}

impl Replicas {
    /// Starts to watch replicas. `primary` is the login of the administrator on the primary. Each
    /// replica has its own login of the administrator, and an executor for its users. Must be
    /// called within a tokio runtime.
    pub fn start(primary: Arc<Config>, replicas: Vec<(Arc<Config>, UserExecutor)>) -> Arc<Self> {
        let primary = Arc::new(Primary::new(primary));
        let mut tasks = vec![tokio::spawn(primary.clone().sample()).abort_handle()];
        let mut watched = Vec::with_capacity(replicas.len());
        for (config, users) in replicas {
            let (sender, position) = watch::channel(None);
            let pool = users.pool().clone();
            watched.push(Replica::new(config.addresses(), users, position));
            let watching = monitor::run(config, primary.clone(), sender, pool);
            tasks.push(tokio::spawn(watching).abort_handle());
        }
        Arc::new(Self {
            primary,
            list: watched,
            sessions: Sessions::default(),
            turn: AtomicUsize::new(0),
            tasks,
        })
    }

    /// The executors of the replicas.
    pub fn user_executors(&self) -> impl Iterator<Item = &UserExecutor> {
        self.list.iter().map(|replica| &replica.users)
    }

    /// The state of each replica.
    pub fn status(&self) -> Vec<ReplicaStatus> {
        let status = |replica: &Replica| replica.status(&self.primary);
        self.list.iter().map(status).collect()
    }

    /// Records that definitions of the database may have changed. A replica gets no reads of the
    /// database until it has replayed everything that the primary has written to the WAL so far.
    pub fn redefined(self: &Arc<Self>, database: &DatabaseName) {
        self.require(database, WalPosition(u64::MAX));
        let (replicas, database) = (self.clone(), database.clone());
        tokio::spawn(async move {
            loop {
                if let Ok(written) = replicas.primary.query_positions().await {
                    return replicas.require(&database, written.inserted);
                }
                sleep(RETRY).await;
            }
        });
    }

    fn require(&self, database: &DatabaseName, position: WalPosition) {
        for replica in &self.list {
            replica.require(database, position);
        }
    }

    /// Chooses a replica that has replayed the WAL up to `after`, and everything that the session
    /// wrote through this node. `None` if there is no such replica.
    fn choose(&self, login: &Login, after: WalPosition) -> Option<&Replica> {
        let written = self.sessions.last_write(login).unwrap_or_default();
        let needed = after.max(written).max(self.primary.required());
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (before, from) = self.list.split_at(turn % self.list.len().max(1));
        let mut in_turn = from.iter().chain(before);
        in_turn.find(|replica| replica.has(&login.database, needed))
    }

    /// Records that the session may have written. If the position of the write is unknown, the next
    /// reads of the session run on the primary. The position is unknown if the primary does not
    /// report it, or if PostgreSQL may still commit the statement after the error.
    async fn wrote(&self, login: &Login, error: Option<&Error>) {
        let is_open = matches!(error, Some(Error::Deadline | Error::Unavailable { .. }));
        let position = if is_open {
            WalPosition(u64::MAX)
        } else {
            self.primary.inserted().await
        };
        self.sessions.wrote(login, position);
    }

    fn last_write(&self, login: &Login) -> Option<WalPosition> {
        let position = self.sessions.last_write(login)?;
        (position.0 != u64::MAX).then_some(position)
    }
}

impl Drop for Replicas {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replicas")
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}
