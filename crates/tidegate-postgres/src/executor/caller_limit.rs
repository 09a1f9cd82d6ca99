//! Limits how many connections of a shared role one caller occupies at a time.
//!
//! All users of an authenticator share the authenticator's connections, and all members of a group
//! share the group's connections. Without the limit, slow statements of one caller could occupy all
//! of these connections, and requests of other callers would time out. A request beyond the limit
//! waits until another request of the same caller ends. The setting `queue` limits how many
//! requests of all callers wait in this way. One database may use half of the queue, and one caller
//! a quarter.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::Settings;
use tidegate_sql::{DatabaseName, Error, Member, Result, RoleName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The delay after which a client should retry if its caller already occupies as many connections
/// as permitted.
const RETRY: Duration = Duration::from_secs(1);

/// A caller to which the limit applies: a user of an authenticator, or a member of a group. The
/// members of a group that subscribe to the same table count as one caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LimitedCaller {
    database: DatabaseName,
    name: CallerName,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallerName {
    User(RoleName),
    Member(Arc<str>),
    Subscriptions(RoleName, u32),
}

impl LimitedCaller {
    pub(super) fn user(database: &DatabaseName, role: &RoleName) -> Self {
        Self {
            database: database.clone(),
            name: CallerName::User(role.clone()),
        }
    }

    /// A member is identified by its id alone. Its requests with different claims count together.
    pub(super) fn member(database: &DatabaseName, member: &Member) -> Self {
        Self {
            database: database.clone(),
            name: CallerName::Member(member.id().into()),
        }
    }

    /// The subscriptions of the members of a group to the table with this OID.
    pub(super) fn subscriptions(database: &DatabaseName, group: &RoleName, table: u32) -> Self {
        Self {
            database: database.clone(),
            name: CallerName::Subscriptions(group.clone(), table),
        }
    }
}

/// The times at which a request stops waiting for a connection. The earlier of the two times
/// applies.
#[derive(Clone, Copy)]
pub(super) struct WaitLimit {
    /// The end of the wait that the pool allows.
    pub(super) until: Instant,
    /// The deadline of the request, if it has one.
    pub(super) deadline: Option<Instant>,
}

impl WaitLimit {
    pub(super) fn new(settings: &Settings, deadline: Option<Instant>) -> Self {
        Self {
            until: Instant::now() + settings.wait,
            deadline,
        }
    }
}

/// The callers that have requests, and how many more connections each of them may occupy.
pub(super) struct CallerLimit {
    /// The maximum number of connections of one caller.
    connections: AtomicUsize,
    /// The maximum number of waiting requests of all callers together, of one database, and of one
    /// caller.
    queue: [usize; 3],
    state: Mutex<LimitState>,
}

#[derive(Default)]
struct LimitState {
    callers: HashMap<LimitedCaller, CallerEntry>,
    /// How many requests wait in each database. Databases without waiting requests have no entry.
    tenants: HashMap<DatabaseName, usize>,
    /// How many requests wait in all databases together.
    waiting: usize,
}

struct CallerEntry {
    free: Arc<Semaphore>,
    /// How many requests run or wait. The entry is removed when this number becomes 0.
    requests: usize,
    waiting: usize,
}

/// The right of one request to occupy a connection. Dropping it releases the right.
pub(super) struct CallerPermit {
    limit: Arc<CallerLimit>,
    caller: LimitedCaller,
    /// `None` while the request waits.
    permit: Option<OwnedSemaphorePermit>,
}

impl CallerLimit {
    pub(super) fn new(settings: &Settings) -> Self {
        let tenant = settings.tenant_queue();
        Self {
            connections: AtomicUsize::new(settings.of_caller()),
            queue: [settings.queue, tenant, tenant.div_ceil(2)],
            state: Mutex::default(),
        }
    }

    /// Adapts the limit to changed settings. Callers that have requests keep the old limit until
    /// they have no request left.
    pub(super) fn resize(&self, settings: &Settings) {
        self.connections
            .store(settings.of_caller(), Ordering::Relaxed);
    }

    /// Waits until the caller occupies fewer connections than permitted.
    ///
    /// # Errors
    ///
    /// [`Error::Deadline`] if the request's deadline passes during the wait. [`Error::PoolTimeout`]
    /// if the wait reaches the limit of the pool first, or if too many requests already wait.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        caller: LimitedCaller,
        wait: WaitLimit,
    ) -> Result<CallerPermit> {
        let (free, mut permit) = self.enter(caller);
        if let Ok(taken) = free.clone().try_acquire_owned() {
            permit.permit = Some(taken);
            return Ok(permit);
        }
        let place = self.queue(&permit.caller)?;
        let deadline_is_first = wait.deadline.is_some_and(|deadline| deadline < wait.until);
        let until = wait
            .deadline
            .filter(|_| deadline_is_first)
            .unwrap_or(wait.until);
        let taken = timeout_at(until, free.acquire_owned()).await;
        drop(place);
        match taken {
            Ok(taken) => permit.permit = Some(taken.map_err(Error::internal)?),
            Err(_) if deadline_is_first => return Err(Error::Deadline),
            Err(_) => return Err(exhausted()),
        }
        Ok(permit)
    }

    /// Counts a request of a caller until the permit is dropped.
    fn enter(self: &Arc<Self>, caller: LimitedCaller) -> (Arc<Semaphore>, CallerPermit) {
        let connections = self.connections.load(Ordering::Relaxed);
        let mut state = self.state.lock();
        let entry = state.callers.entry(caller.clone());
        let entry = entry.or_insert_with(|| CallerEntry {
            free: Arc::new(Semaphore::new(connections)),
            requests: 0,
            waiting: 0,
        });
        entry.requests += 1;
        let permit = CallerPermit {
            limit: self.clone(),
            caller,
            permit: None,
        };
        (entry.free.clone(), permit)
    }

    /// Counts a request as waiting until the returned guard is dropped. Fails if too many requests
    /// already wait.
    fn queue<'a>(&'a self, caller: &'a LimitedCaller) -> Result<QueuedRequest<'a>> {
        let mut state = self.state.lock();
        let waiting = [
            state.waiting,
            state.tenants.get(&caller.database).copied().unwrap_or(0),
            state.callers.get(caller).map_or(0, |entry| entry.waiting),
        ];
        if waiting.iter().zip(&self.queue).any(|(is, most)| is >= most) {
            return Err(exhausted());
        }
        state.waiting += 1;
        *state.tenants.entry(caller.database.clone()).or_default() += 1;
        if let Some(entry) = state.callers.get_mut(caller) {
            entry.waiting += 1;
        }
        Ok(QueuedRequest {
            limit: self,
            caller,
        })
    }
}

/// A request that waits until another request of its caller ends. Dropping it ends the wait.
struct QueuedRequest<'a> {
    limit: &'a CallerLimit,
    caller: &'a LimitedCaller,
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.limit.state.lock();
        state.waiting -= 1;
        if let Some(waiting) = state.tenants.get_mut(&self.caller.database) {
            *waiting -= 1;
            if *waiting == 0 {
                state.tenants.remove(&self.caller.database);
            }
        }
        if let Some(entry) = state.callers.get_mut(self.caller) {
            entry.waiting -= 1;
        }
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut state = self.limit.state.lock();
        if let Some(entry) = state.callers.get_mut(&self.caller) {
            entry.requests -= 1;
            if entry.requests == 0 {
                state.callers.remove(&self.caller);
            }
        }
    }
}

fn exhausted() -> Error {
    Error::PoolTimeout { retry_after: RETRY }
}

#[cfg(test)]
mod tests;
