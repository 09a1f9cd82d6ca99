//! Who strangers are in each database.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tidegate_oauth::{Store, StoreError};
use tidegate_sql::{DatabaseName, Login, RoleName, Sharing};

/// How long an answer is taken for true. A notice drops it earlier.
const FRESH: Duration = Duration::from_secs(5);
/// How long an answer is better than none, while the store is away.
const USABLE: Duration = Duration::from_mins(1);
/// Strangers choose the names, so their number has an end.
const MOST: usize = 10_000;

/// The default users of databases, asked of the store once in a while.
pub(crate) struct DefaultUsers {
    store: Arc<dyn Store>,
    known: RwLock<HashMap<Box<str>, Known>>,
}

#[derive(Clone)]
struct Known {
    login: Option<Login>,
    asked_at: Instant,
}

impl DefaultUsers {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            known: RwLock::default(),
        }
    }

    /// The login of the database's default user, if there is such a database and user.
    pub(crate) async fn of(&self, database: &str) -> Result<Option<Login>, StoreError> {
        let known = self.known(database);
        if let Some(known) = &known
            && known.asked_at.elapsed() < FRESH
        {
            return Ok(known.login.clone());
        }
        match self.store.default_user(database).await {
            Ok(user) => {
                let login = user.map(|user| Login {
                    database: DatabaseName::new(database),
                    role: RoleName::new(user.role),
                    sharing: Sharing::Strangers,
                });
                self.learn(database, login.clone());
                Ok(login)
            }
            Err(error) => match known {
                Some(known) if known.asked_at.elapsed() < USABLE => Ok(known.login),
                _ => Err(error),
            },
        }
    }

    /// Asks again the next time.
    pub(crate) fn forget(&self, database: &str) {
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(database);
    }

    fn known(&self, database: &str) -> Option<Known> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(database)
            .cloned()
    }

    fn learn(&self, database: &str, login: Option<Login>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(
            database.into(),
            Known {
                login,
                asked_at: Instant::now(),
            },
        );
    }
}
