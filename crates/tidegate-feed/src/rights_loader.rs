//! What roles may read, asked for many subscriptions at once.
//!
//! A burst of subscriptions must not become a burst of questions: while a database is asked, those
//! who come wait for the next question, which is about all of them and begins after they have come,
//! so that nobody gets an answer from before.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Executor, Login};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{Error, Result};
use crate::rights::{Answer, Rights};
use crate::rights_question::{self, PAIRS, Pair};
use crate::settings::Settings;

/// The longest pause before a database that had no time is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Asks for rights, one question of a database at a time.
pub(crate) struct RightsLoader {
    executor: Arc<dyn Executor>,
    /// Whom the next question of a database is for; a database is here as long as somebody asks.
    waiting: Mutex<HashMap<DatabaseName, Waiting>>,
    /// How many databases may be asked at once.
    places: Semaphore,
    patience: Duration,
}

/// Those who wait for an answer about a role and a table.
type Waiting = HashMap<Pair, Vec<oneshot::Sender<Answer>>>;

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
        let pair = (login.role.clone(), relation);
        if self.enter(&login.database, Waiting::from([(pair, vec![reply])])) {
            tokio::spawn(self.clone().serve(login.database.clone()));
        }
        match timeout_at(deadline, answer).await {
            Ok(Ok(answer)) => answer.into_result(),
            Ok(Err(_)) => Err(Error::Internal("nobody asks for rights".into())),
            Err(_) => Err(Error::Timeout {
                what: "asking what the role may read".to_owned(),
                limit: self.patience,
            }),
        }
    }

    /// Adds to those who wait; says whether nobody asks the database yet.
    fn enter(&self, database: &DatabaseName, group: Waiting) -> bool {
        let mut waiting = self.waiting.lock();
        let is_new = !waiting.contains_key(database);
        let all = waiting.entry(database.clone()).or_default();
        for (pair, replies) in group {
            all.entry(pair).or_default().extend(replies);
        }
        is_new
    }

    /// Asks as long as somebody waits.
    async fn serve(self: Arc<Self>, database: DatabaseName) {
        loop {
            let place = self.places.acquire().await;
            let Some(group) = self.take(&database) else {
                return;
            };
            let pairs = group.keys().cloned().collect();
            let mut answers = rights_question::ask(&*self.executor, &database, pairs).await;
            drop(place);
            let mut again = Waiting::new();
            for (pair, replies) in group {
                match answers.remove(&pair).unwrap_or(Answer::NoTable) {
                    Answer::Failed(error) if is_busy(&error) => {
                        again.insert(pair, replies);
                    }
                    // Who has gone needs no answer.
                    answer => replies
                        .into_iter()
                        .for_each(|reply| drop(reply.send(answer.clone()))),
                }
            }
            if !again.is_empty() {
                self.enter(&database, again);
                sleep(PAUSE).await;
            }
        }
    }

    /// Those whom the next question is for; nobody, when the database is done with.
    fn take(&self, database: &DatabaseName) -> Option<Waiting> {
        let mut waiting = self.waiting.lock();
        let all = waiting.get_mut(database)?;
        for replies in all.values_mut() {
            replies.retain(|reply| !reply.is_closed());
        }
        all.retain(|_, replies| !replies.is_empty());
        if all.is_empty() {
            waiting.remove(database);
            return None;
        }
        let some: Vec<Pair> = all.keys().take(PAIRS).cloned().collect();
        let taken = some.into_iter().filter_map(|pair| all.remove_entry(&pair));
        Some(taken.collect())
    }
}

/// Whether the connections are others' at this moment, or the table is.
fn is_busy(error: &tidegate_sql::Error) -> bool {
    matches!(error, tidegate_sql::Error::PoolTimeout { .. }) || error.sqlstate() == Some("55P03")
}

impl fmt::Debug for RightsLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RightsLoader").finish_non_exhaustive()
    }
}
