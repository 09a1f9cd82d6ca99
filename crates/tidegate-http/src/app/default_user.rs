//! As whom anonymous callers run in each database, and what they may do there.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tidegate_identity::{AnonymousSql, StoreError};
use tidegate_oauth::IssuerStore;
use tidegate_sql::{DatabaseName, Login, RoleName, Sharing};

/// How long an answer is taken for true. A notice drops it earlier.
const FRESH: Duration = Duration::from_secs(5);
/// How long an answer is better than none, while the store is away.
const USABLE: Duration = Duration::from_mins(1);
/// Strangers choose the names, so their number has an end.
const MOST: usize = 10_000;

/// The default users of databases, as the store had them a few seconds ago.
pub(crate) struct DefaultUsers {
    store: Arc<dyn IssuerStore>,
    known: RwLock<HashMap<Box<str>, Known>>,
}

/// What a database has for anonymous callers.
#[derive(Clone)]
pub(crate) struct DefaultUser {
    /// How they log in, if there is such a database and it has a default user.
    pub login: Option<Login>,
    /// What they may do with raw SQL.
    pub sql: AnonymousSql,
}

#[derive(Clone)]
struct Known {
    user: DefaultUser,
    asked_at: Instant,
}

impl DefaultUsers {
    pub(crate) fn new(store: Arc<dyn IssuerStore>) -> Self {
        Self {
            store,
            known: RwLock::default(),
        }
    }

    /// The database's default user.
    pub(crate) async fn of(&self, database: &str) -> Result<DefaultUser, StoreError> {
        let known = self.known(database);
        if let Some(known) = &known
            && known.asked_at.elapsed() < FRESH
        {
            return Ok(known.user.clone());
        }
        match self.ask(database).await {
            Ok(user) => {
                self.learn(database, user.clone());
                Ok(user)
            }
            Err(error) => match known {
                Some(known) if known.asked_at.elapsed() < USABLE => Ok(known.user),
                _ => Err(error),
            },
        }
    }

    async fn ask(&self, database: &str) -> Result<DefaultUser, StoreError> {
        let Some(user) = self.store.default_user(database).await? else {
            return Ok(DefaultUser {
                login: None,
                sql: AnonymousSql::Off,
            });
        };
        Ok(DefaultUser {
            login: Some(Login {
                database: DatabaseName::new(database),
                role: RoleName::new(user.role),
                sharing: Sharing::Strangers,
            }),
            sql: self.store.anonymous_sql(database).await?,
        })
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

    fn learn(&self, database: &str, user: DefaultUser) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(
            database.into(),
            Known {
                user,
                asked_at: Instant::now(),
            },
        );
    }
}
