//! Whether roles may log in, and the settings with which their sessions start (PostgreSQL, "Role
//! Attributes" and "ALTER ROLE").
//!
//! PostgreSQL checks the right to log in, and applies the settings, at login only. When the right
//! or the settings change, the open connections of the role are closed before their next use.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_pool::{Connector, Pool, PoolKey};
use tidegate_sql::statement::{BoundStatement, Statement};
use tidegate_sql::{Executor, Principal, QueryOptions, Result};

use crate::purity::{bind, statement, text_rows};

/// An SQL expression over the rows `r` of `pg_roles` and `d` of `pg_database`. Its value changes
/// when the role may no longer log in to the database, or when new sessions of the role would start
/// with other settings.
pub const LOGIN_STATE: &str = "pg_catalog.concat_ws(' ', r.oid, r.rolcanlogin, \
    coalesce(r.rolvaliduntil <= pg_catalog.now(), false), \
    d.oid, d.datallowconn, pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), \
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', s.setdatabase, s.setrole, \
       s.xmin), ' ' ORDER BY s.setdatabase, s.setrole) \
     FROM pg_catalog.pg_db_role_setting s \
     WHERE s.setrole IN (0, r.oid) AND s.setdatabase IN (0, d.oid)))";

/// Selects login states. `:roles` and `:databases` are arrays of the same length; the values at one
/// index are a role and a database in which this role logs in.
static STATEMENT: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let states = format!(
        "SELECT k.database, k.role, {LOGIN_STATE} FROM ROWS FROM (pg_catalog.unnest(:databases::text[]), pg_catalog.unnest(:roles::text[])) \
          AS k (database, role) \
      JOIN pg_catalog.pg_database d ON d.datname = k.database \
      JOIN pg_catalog.pg_roles r ON r.rolname = k.role"
    );
    statement(&states)
});

/// The time limit of the query for login states.
const LIMIT: Duration = Duration::from_secs(10);

/// For each login (a role in a database) that has open connections: the login state at the time
/// when the oldest of these connections was opened.
#[derive(Debug, Default)]
pub(crate) struct LoginStates {
    known: Mutex<HashMap<PoolKey, String>>,
    /// How many checks have been requested.
    requested: AtomicU64,
    /// How many of the requested checks are complete.
    completed: tokio::sync::Mutex<u64>,
}

impl LoginStates {
    /// Records the login state before a connection is opened. Does not replace a state that is
    /// recorded already, because older connections started with that state.
    pub(crate) fn note(&self, key: &PoolKey, state: String) {
        self.known.lock().entry(key.clone()).or_insert(state);
    }

    /// Closes the connections in `pool` whose login state has changed. Concurrent calls share one
    /// query.
    pub(crate) async fn check(
        &self,
        service: &dyn Executor,
        pool: &Pool<impl Connector>,
    ) -> Result<()> {
        let mine = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        let mut completed = self.completed.lock().await;
        if *completed >= mine {
            return Ok(());
        }
        let covered = self.requested.load(Ordering::SeqCst);
        self.compare(service, pool).await?;
        *completed = covered;
        Ok(())
    }

    /// Does the same as [`Self::check`], but with a query of its own for each call.
    pub(crate) async fn compare(
        &self,
        service: &dyn Executor,
        pool: &Pool<impl Connector>,
    ) -> Result<()> {
        let held = pool.keys();
        let mut states = HashMap::new();
        let options = QueryOptions {
            deadline: Some(Instant::now() + LIMIT),
            ..QueryOptions::default()
        };
        for row in text_rows(service, &Principal::Control, &bind_keys(&held)?, &options).await? {
            let [database, role, state]: [String; 3] = row.try_into().unwrap_or_default();
            states.insert((database, role), state);
        }
        for key in self.changed(held, &states, pool) {
            tracing::info!(%key, "role changed or locked out; closing its connections");
            pool.close_role(&key.database, &key.role);
        }
        Ok(())
    }

    /// Returns the logins in `held` whose state has changed, and stores the new states. The state
    /// of a dropped role or database is empty. Removes states of logins without open connections.
    fn changed(
        &self,
        held: Vec<PoolKey>,
        states: &HashMap<(String, String), String>,
        pool: &Pool<impl Connector>,
    ) -> Vec<PoolKey> {
        let mut known = self.known.lock();
        let mut changed = Vec::new();
        for key in held {
            let names = (key.database.to_string(), key.role.to_string());
            let state = states.get(&names).cloned().unwrap_or_default();
            let before = known.insert(key.clone(), state.clone());
            if before.is_some_and(|before| before != state) {
                changed.push(key);
            }
        }
        // Connections may have been opened during the query, so the keys are read again.
        let held: HashSet<_> = pool.keys().into_iter().collect();
        known.retain(|key, _| held.contains(key));
        changed
    }
}

fn bind_keys(keys: &[PoolKey]) -> Result<BoundStatement> {
    // The text form of an array (PostgreSQL, "Array Input and Output Syntax").
    let quoted = |name: &str| format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""));
    let array = |name: fn(&PoolKey) -> &str| {
        let names: Vec<_> = keys.iter().map(|key| quoted(name(key))).collect();
        format!("{{{}}}", names.join(","))
    };
    let databases = array(|key| key.database.as_str());
    let roles = array(|key| key.role.as_str());
    bind(&STATEMENT, &[("databases", &databases), ("roles", &roles)])
}
