//! Idle sessions of the administrator in its own database. Frequent operations reuse them, because
//! a login costs PostgreSQL more than all statements of a sign-up.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_wire::Config;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::Result;
use super::session::Session;

/// The maximum number of idle sessions. The creation of a user in groups uses two sessions: one
/// holds the lock of the groups, and the other changes roles.
const MAX_IDLE_SESSIONS: usize = 2;

/// How long an idle session is kept.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);

#[derive(Clone, Default)]
pub(super) struct SessionCache(Arc<Mutex<Idle>>);

#[derive(Default)]
struct Idle {
    sessions: Vec<(Session, Instant)>,
    /// Whether the task [`close_old`] is running.
    closer_runs: bool,
}

impl SessionCache {
    /// Returns an idle session that still works, or opens a session.
    ///
    /// # Errors
    ///
    /// The errors of [`Session::open`].
    pub(super) async fn take(&self, config: &Config) -> Result<Session> {
        while let Some(session) = self.pop() {
            if session.client.simple_query("").await.is_ok() {
                return Ok(session);
            }
        }
        Session::open(config, config.admin_database.as_str()).await
    }

    fn pop(&self) -> Option<Session> {
        self.0.lock().sessions.pop().map(|(session, _)| session)
    }

    /// Adds a session to the cache, or closes it if the cache is full. The session must be in its
    /// initial state: outside of a transaction, without locks and without changed settings.
    pub(super) fn put(&self, session: Session) {
        // Without a runtime, no task could close the session later.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut idle = self.0.lock();
        if idle.sessions.len() >= MAX_IDLE_SESSIONS {
            return;
        }
        idle.sessions.push((session, Instant::now()));
        if !std::mem::replace(&mut idle.closer_runs, true) {
            runtime.spawn(close_old(self.clone()));
        }
    }
}

/// Closes sessions that were idle for too long. Ends when no idle session is left.
async fn close_old(cache: SessionCache) {
    loop {
        sleep(MAX_IDLE_TIME).await;
        let mut idle = cache.0.lock();
        idle.sessions
            .retain(|(_, since)| since.elapsed() < MAX_IDLE_TIME);
        if idle.sessions.is_empty() {
            idle.closer_runs = false;
            return;
        }
    }
}

impl fmt::Debug for SessionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionCache")
    }
}
