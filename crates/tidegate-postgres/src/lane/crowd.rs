//! The reads of a session that run at once, and the lanes that they share.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{Login, Result};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use super::driver::drive;
use super::open::Open;
use crate::dictionary::Dictionary;
use crate::executor::RoleConnector;
use crate::pool::Lease;
use crate::session::task::Task;

/// So many reads at once are worth a lane.
const MANY: usize = 4;
/// So many sessions are kept before those that do nothing are forgotten.
const SESSIONS: usize = 1024;
/// The rest of a lane that has ended, before it is opened again.
const REST: Duration = Duration::from_millis(100);

/// The sessions that read, by login.
#[derive(Default)]
pub(crate) struct Crowds {
    sessions: RwLock<HashMap<Login, Arc<Crowd>>>,
    /// Reads that a lane answered.
    answered: AtomicU64,
}

impl Crowds {
    /// How many reads lanes have answered.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Counts an answer.
    pub(crate) fn count(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a read of a session in, until the visit is dropped.
    pub(crate) fn enter(&self, login: &Login) -> Visit {
        let known = self.sessions.read().get(login).cloned();
        let crowd = known.unwrap_or_else(|| self.make(login));
        crowd.running.fetch_add(1, Ordering::Relaxed);
        Visit(crowd)
    }

    fn make(&self, login: &Login) -> Arc<Crowd> {
        let mut crowds = self.sessions.write();
        if crowds.len() >= SESSIONS {
            crowds.retain(|_, crowd| crowd.running.load(Ordering::Relaxed) > 0);
        }
        crowds.entry(login.clone()).or_default().clone()
    }
}

/// The reads of a session.
struct Crowd {
    running: AtomicUsize,
    lanes: Box<[Arc<Lane>]>,
}

impl Default for Crowd {
    fn default() -> Self {
        static PROCESSORS: OnceLock<usize> = OnceLock::new();
        let processors = PROCESSORS.get_or_init(|| available_parallelism().map_or(1, usize::from));
        let lanes = (processors / 2).clamp(1, 8);
        Self {
            running: AtomicUsize::new(0),
            lanes: (0..lanes).map(|_| Arc::default()).collect(),
        }
    }
}

/// A read that is counted among those of its session.
pub(crate) struct Visit(Arc<Crowd>);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Visit {
    /// Puts a read on a lane with room, when others run and it may. The answer may fail to come;
    /// then the read has to run on a connection of its own.
    pub(crate) fn ask(&self, task: &Task<'_>) -> Option<oneshot::Receiver<Answer>> {
        if self.0.running.load(Ordering::Relaxed) < 2 {
            return None;
        }
        self.0.lanes.iter().find_map(|lane| lane.take(task))
    }

    /// Opens a lane when so many read at once that it is worth it; `lease` borrows its connection.
    pub(crate) fn open<F>(&self, dictionary: &Arc<Dictionary>, lease: impl FnOnce() -> F)
    where
        F: Future<Output = Result<Lease<RoleConnector>>> + Send + 'static,
    {
        if self.0.running.load(Ordering::Relaxed) < MANY {
            return;
        }
        let Some(lane) = self.0.lanes.iter().find(|lane| lane.begins()) else {
            return;
        };
        let (lane, lease, dictionary) = (lane.clone(), lease(), dictionary.clone());
        tokio::spawn(async move {
            match lease.await {
                Ok(lease) => {
                    lane.state.lock().open = Some(Open::new(lease, dictionary));
                    drive(lane).await;
                }
                // Whoever asks for a connection himself is told why there is none.
                Err(_) => lane.close(),
            }
        });
    }
}

/// A lane, open or not.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) state: Mutex<State>,
}

/// How it stands with a lane.
#[derive(Default)]
pub(super) struct State {
    pub(super) open: Option<Open>,
    /// Takes no more reads.
    pub(super) closing: bool,
    /// Somebody opens or drives it.
    claimed: bool,
    /// Stays closed until then.
    rests_until: Option<Instant>,
}

impl Lane {
    fn take(&self, task: &Task<'_>) -> Option<oneshot::Receiver<Answer>> {
        let mut state = self.state.lock();
        let closing = state.closing;
        let open = state.open.as_mut().filter(|_| !closing)?;
        open.has_room().then(|| open.take(task)).flatten()
    }

    /// Whether it is to be opened, by whoever is told so.
    fn begins(&self) -> bool {
        let mut state = self.state.lock();
        let rests = state
            .rests_until
            .is_some_and(|until| Instant::now() < until);
        !rests && !std::mem::replace(&mut state.claimed, true)
    }

    /// Ends it; the connection goes back.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        let open = state.open.take();
        *state = State {
            rests_until: Some(Instant::now() + REST),
            ..State::default()
        };
        drop(state);
        if let Some(open) = open {
            open.end();
        }
    }
}
