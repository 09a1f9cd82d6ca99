//! The reads of a session that run at once, and the lanes that they share.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{Login, Result};
use tokio::time::Instant;

use super::driver::drive;
use super::intake::{Asked, Intake};
use super::wire::Wire;
use crate::dictionary::Dictionary;
use crate::executor::RoleConnector;
use crate::pool::{Key, Lease};
use crate::session::task::Task;
use crate::suspects::Verdict;

/// So many reads at once are worth a lane.
const MANY: usize = 4;
/// Lanes of a session at most.
const LANES: usize = 8;
/// So many sessions are kept before those that do nothing are forgotten.
const SESSIONS: usize = 1024;
/// The rest of a lane that has ended, before it is opened again.
const REST: Duration = Duration::from_millis(100);

/// The sessions that read, by login.
pub(crate) struct Crowds {
    sessions: RwLock<HashMap<Login, Arc<Crowd>>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// The open lanes of a role.
    open: Mutex<HashMap<Key, usize>>,
    /// Reads that a lane answered.
    answered: AtomicU64,
    /// Lanes of a role at most.
    most: usize,
}

impl Crowds {
    /// For roles that may have so many connections: a quarter of them may be shared.
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            sessions: RwLock::default(),
            counts: Arc::new(Counts {
                most: (connections / 4).max(1),
                ..Counts::default()
            }),
        }
    }

    /// How many reads lanes have answered.
    pub(crate) fn answered(&self) -> u64 {
        self.counts.answered.load(Ordering::Relaxed)
    }

    /// Counts an answer.
    pub(crate) fn count(&self) {
        self.counts.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read of a session in, until the visit is dropped.
    pub(crate) fn enter(&self, login: &Login) -> Visit {
        let known = self.sessions.read().get(login).cloned();
        let crowd = known.unwrap_or_else(|| self.make(login));
        let others = crowd.running.fetch_add(1, Ordering::Relaxed);
        Visit { crowd, others }
    }

    fn make(&self, login: &Login) -> Arc<Crowd> {
        let mut crowds = self.sessions.write();
        if crowds.len() >= SESSIONS {
            crowds.retain(|_, crowd| crowd.running.load(Ordering::Relaxed) > 0);
        }
        let crowd = crowds.entry(login.clone());
        crowd
            .or_insert_with(|| Arc::new(Crowd::new(&self.counts)))
            .clone()
    }
}

/// The reads of a session.
struct Crowd {
    running: AtomicUsize,
    lanes: Box<[Arc<Lane>]>,
    counts: Arc<Counts>,
}

impl Crowd {
    fn new(counts: &Arc<Counts>) -> Self {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| available_parallelism().map_or(1, usize::from));
        let lanes = (processors / 2).min(counts.most).clamp(1, LANES);
        Self {
            running: AtomicUsize::new(0),
            lanes: (0..lanes).map(|_| Arc::default()).collect(),
            counts: counts.clone(),
        }
    }
}

/// A read that is counted among those of its session.
pub(crate) struct Visit {
    crowd: Arc<Crowd>,
    /// How many others ran when it came.
    others: usize,
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.crowd.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Visit {
    /// Puts a read on a lane with room, when others run and it may. The answer may fail to come;
    /// then the read has to run on a connection of its own.
    pub(crate) fn ask(&self, task: &Task<'_>) -> Asked {
        if self.others == 0 {
            return Asked::Unfit;
        }
        for lane in &self.crowd.lanes {
            match lane.take(task) {
                Asked::Full => {}
                asked => return asked,
            }
        }
        Asked::Full
    }

    /// Opens a lane when so many read at once that it is worth it, and this read could use it;
    /// `lease` borrows its connection.
    pub(crate) fn open<F>(
        &self,
        task: &Task<'_>,
        dictionary: &Arc<Dictionary>,
        lease: impl FnOnce() -> F,
    ) where
        F: Future<Output = Result<Lease<RoleConnector>>> + Send + 'static,
    {
        let now = Instant::now();
        let closed = |lane: &&Arc<Lane>| lane.is_closed(now);
        if self.others < MANY || !is_fit(task, now) {
            return;
        }
        let Some(lane) = self.crowd.lanes.iter().find(closed) else {
            return;
        };
        let Some(claim) = Claim::new(lane, &self.crowd.counts, task.login) else {
            return;
        };
        let (lease, dictionary) = (lease(), dictionary.clone());
        let switch = task.switch.map(|switch| switch.text);
        tokio::spawn(async move {
            // Whoever asks for a connection himself is told why there is none.
            if let Ok(lease) = lease.await
                && let Some((wire, intake)) = Wire::open(lease, dictionary, switch).await
            {
                claim.lane().state.lock().intake = Some(intake);
                drive(claim, wire).await;
            }
        });
    }
}

/// Whether a lane would take the read.
fn is_fit(task: &Task<'_>, now: Instant) -> bool {
    let shape = task.dictionary.shape(task.bound, &task.login.role);
    shape.is_some_and(|shape| shape.pace.is_quick(now))
        && !(task.dictionary.belief).suspects(&task.bound.statement, &Verdict::default())
}

/// A lane, open or not.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) state: Mutex<State>,
}

/// How it stands with a lane.
#[derive(Default)]
pub(super) struct State {
    /// There while it is open.
    pub(super) intake: Option<Intake>,
    /// Takes no more reads.
    pub(super) closing: bool,
    /// Somebody opens or drives it.
    claimed: bool,
    /// Stays closed until then.
    rests_until: Option<Instant>,
}

impl Lane {
    fn take(&self, task: &Task<'_>) -> Asked {
        let mut state = self.state.lock();
        let closing = state.closing;
        match &mut state.intake {
            Some(intake) if !closing => intake.take(task),
            _ => Asked::Full,
        }
    }

    fn is_closed(&self, now: Instant) -> bool {
        let state = self.state.lock();
        !state.claimed && state.rests_until.is_none_or(|until| until <= now)
    }
}

/// The right to drive a lane. However that ends, the lane is closed then.
pub(super) struct Claim {
    lane: Arc<Lane>,
    counts: Arc<Counts>,
    key: Key,
}

impl Claim {
    /// Claims a lane, unless somebody else does or the role has as many as it may.
    fn new(lane: &Arc<Lane>, counts: &Arc<Counts>, login: &Login) -> Option<Self> {
        let key = Key::from(login);
        let mut open = counts.open.lock();
        let of_role = open.get(&key).copied().unwrap_or(0);
        let mut state = lane.state.lock();
        if of_role >= counts.most || state.claimed {
            return None;
        }
        state.claimed = true;
        open.insert(key.clone(), of_role + 1);
        Some(Self {
            lane: lane.clone(),
            counts: counts.clone(),
            key,
        })
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// Closes the lane; gives what requests have asked meanwhile.
    pub(super) fn close(&self) -> Option<Intake> {
        self.lane.state.lock().intake.take()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let rest = State {
            rests_until: Some(Instant::now() + REST),
            ..State::default()
        };
        let state = std::mem::replace(&mut *self.lane.state.lock(), rest);
        // Who still waits is told.
        drop(state);
        let mut open = self.counts.open.lock();
        if let Some(count) = open.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.key);
            }
        }
    }
}
