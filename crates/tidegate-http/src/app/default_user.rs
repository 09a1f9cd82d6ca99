//! A cache of the default users of databases. Anonymous callers of a database run as its default
//! user.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tidegate_identity::{AnonymousSql, StoreError};
use tidegate_oauth::IssuerStore;
use tidegate_sql::{DatabaseName, Login, RoleName, RoleUse};

/// How long a cached record is used without asking the store. A notification that the tenant's
/// users or settings have changed removes the record earlier.
const CACHE_TTL: Duration = Duration::from_secs(5);
/// How long a cached record is used if the store is down.
const STALE_TTL: Duration = Duration::from_mins(1);
/// The largest number of cached records. There is a limit, because an anonymous caller can name any
/// database, even one that does not exist.
const MAX_ENTRIES: usize = 10_000;

pub(crate) struct DefaultUsers {
    store: Arc<dyn IssuerStore>,
    known: RwLock<HashMap<Box<str>, CachedUser>>,
}

/// The login of the anonymous callers of a database, and the SQL that they may run.
#[derive(Clone)]
pub(crate) struct DefaultUser {
    /// The login of the default user; `None` if there is no such database, or it has no default
    /// user.
    pub login: Option<Login>,
    /// The kind of SQL statements that anonymous callers may send.
    pub sql: AnonymousSql,
}

#[derive(Clone)]
struct CachedUser {
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

    /// The default user of a database, from the cache or the store. If the store is down, a cached
    /// record is used until it is older than [`STALE_TTL`].
    pub(crate) async fn of(&self, database: &str) -> Result<DefaultUser, StoreError> {
        let known = self.known(database);
        if let Some(known) = &known
            && known.asked_at.elapsed() < CACHE_TTL
        {
            return Ok(known.user.clone());
        }
        match self.ask(database).await {
            Ok(user) => {
                self.store_in_cache(database, user.clone());
                Ok(user)
            }
            Err(error) => match known {
                Some(known) if known.asked_at.elapsed() < STALE_TTL => Ok(known.user),
                _ => Err(error),
            },
        }
    }

    async fn ask(&self, database: &str) -> Result<DefaultUser, StoreError> {
        let user = self.store.default_user(database).await?;
        let Some(role) = user.and_then(|user| user.role) else {
            return Ok(DefaultUser {
                login: None,
                sql: AnonymousSql::Off,
            });
        };
        Ok(DefaultUser {
            login: Some(Login {
                database: DatabaseName::new(database),
                role: RoleName::new(role),
                role_use: RoleUse::Anonymous,
            }),
            sql: self.store.anonymous_sql(database).await?,
        })
    }

    /// Removes the cached record of a database.
    pub(crate) fn forget(&self, database: &str) {
        self.known
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(database);
    }

    fn known(&self, database: &str) -> Option<CachedUser> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(database)
            .cloned()
    }

    fn store_in_cache(&self, database: &str, user: DefaultUser) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(
            database.into(),
            CachedUser {
                user,
                asked_at: Instant::now(),
            },
        );
    }
}
