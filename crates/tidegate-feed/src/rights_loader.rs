//! What roles may read, asked for many subscriptions at once.
//!
//! A burst of subscriptions must not become a burst of connections: while a role is asked, those
//! who come wait for the next question, which is about all of their tables and begins after they
//! have come, so that nobody gets an answer from before.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{Executor, Login};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{Error, Result};
use crate::rights::{self, Answer, Rights};
use crate::settings::Settings;

/// How many tables a question may be about.
const TABLES: usize = 200;
/// The longest pause before a pool that had no connection is asked for one again.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks for rights, one question of a role at a time.
pub(crate) struct RightsLoader {
    executor: Arc<dyn Executor>,
    /// Whom the next question of a role is for; a role is here as long as somebody asks for it.
    waiting: Mutex<HashMap<Login, Waiting>>,
    /// How many roles may be asked about at once.
    places: Semaphore,
    patience: Duration,
}

/// Those who wait for an answer about a table.
type Waiting = HashMap<u32, Vec<oneshot::Sender<Answer>>>;

impl RightsLoader {
    pub(crate) fn new(executor: Arc<dyn Executor>, settings: &Settings) -> Self {
        Self {
            executor,
            waiting: Mutex::default(),
            places: Semaphore::new(settings.questions.max(1)),
            patience: settings.patience,
        }
    }

    /// What a role may read of a table, by a question that begins after this call.
    ///
    /// # Errors
    /// [`Error::NoTable`], [`Error::Timeout`], and what PostgreSQL refuses.
    pub(crate) async fn load(
        self: &Arc<Self>,
        login: &Login,
        relation: u32,
        deadline: Instant,
    ) -> Result<Arc<Rights>> {
        let (reply, answer) = oneshot::channel();
        self.enter(login, relation, reply);
        match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer.into_result(),
            Ok(Err(_)) => Err(Error::Internal("nobody asks for rights".into())),
            Err(_) => Err(Error::Timeout {
                what: "asking what the role may read".to_owned(),
                limit: self.patience,
            }),
        }
    }

    fn enter(self: &Arc<Self>, login: &Login, relation: u32, reply: oneshot::Sender<Answer>) {
        let mut waiting = self.waiting.lock();
        let known = waiting.get_mut(login);
        let is_new = known.is_none();
        let tables = match known {
            Some(tables) => tables,
            None => waiting.entry(login.clone()).or_default(),
        };
        tables.entry(relation).or_default().push(reply);
        drop(waiting);
        if is_new {
            tokio::spawn(self.clone().serve(login.clone()));
        }
    }

    /// Asks as long as somebody waits.
    async fn serve(self: Arc<Self>, login: Login) {
        loop {
            let place = self.places.acquire().await;
            let Some(group) = self.take(&login) else {
                return;
            };
            let tables: Vec<u32> = group.keys().copied().collect();
            let mut answers = rights::ask(&*self.executor, &login, &tables).await;
            drop(place);
            let mut again = Waiting::new();
            for (relation, replies) in group {
                match answers.remove(&relation).unwrap_or(Answer::NoTable) {
                    Answer::Failed(error) if is_busy(&error) => {
                        again.insert(relation, replies);
                    }
                    // Who has gone needs no answer.
                    answer => replies
                        .into_iter()
                        .for_each(|reply| drop(reply.send(answer.clone()))),
                }
            }
            if !again.is_empty() {
                self.put_back(&login, again);
                sleep(PAUSE).await;
            }
        }
    }

    /// Those whom the next question is for; nobody, when the role is done with.
    fn take(&self, login: &Login) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        let tables = waiting.get_mut(login)?;
        for replies in tables.values_mut() {
            replies.retain(|reply| !reply.is_closed());
        }
        tables.retain(|_, replies| !replies.is_empty());
        if tables.is_empty() {
            waiting.remove(login);
            return None;
        }
        let some: Vec<u32> = tables.keys().copied().take(TABLES).collect();
        let taken = some
            .into_iter()
            .filter_map(|table| tables.remove_entry(&table));
        Some(taken.collect())
    }

    fn put_back(&self, login: &Login, group: Waiting) {
        let mut waiting = self.waiting.lock();
        let tables = waiting.entry(login.clone()).or_default();
        for (relation, replies) in group {
            tables.entry(relation).or_default().extend(replies);
        }
    }
}

/// Whether others have all connections at this moment.
fn is_busy(error: &tidegate_sql::Error) -> bool {
    matches!(error, tidegate_sql::Error::PoolTimeout { .. })
}

impl fmt::Debug for RightsLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RightsLoader").finish_non_exhaustive()
    }
}
