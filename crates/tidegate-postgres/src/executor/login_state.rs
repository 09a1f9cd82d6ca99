//! Whether roles may log in, and with what settings their sessions begin (PostgreSQL, "Role
//! Attributes" and "ALTER ROLE").
//!
//! PostgreSQL checks both when a session begins. A connection that is open when they change would
//! keep the old state, so it is closed before it is lent again.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidegate_pool::{Key, Pool};
use tidegate_sql::statement::{BoundStatement, Statement};
use tidegate_sql::{Executor, Principal, QueryOptions, Result};
use tidegate_values::Parameter;

use super::RoleConnector;
use crate::suspects::texts;

/// An SQL expression over `r` of `pg_roles` and `d` of `pg_database`: a text that is different once
/// the role may not log in to the database any more, or its sessions would begin with other
/// settings.
pub const LOGIN_STATE: &str = "pg_catalog.concat_ws(' ', r.oid, r.rolcanlogin, \
    coalesce(r.rolvaliduntil <= pg_catalog.now(), false), \
    d.oid, d.datallowconn, pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), \
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', s.setdatabase, s.setrole, \
       s.xmin), ' ' ORDER BY s.setdatabase, s.setrole) \
     FROM pg_catalog.pg_db_role_setting s \
     WHERE s.setrole IN (0, r.oid) AND s.setdatabase IN (0, d.oid)))";

/// The state of the logins asked for, and first which transactions have ended.
static STATEMENT: LazyLock<Arc<Statement>> = LazyLock::new(|| {
    let states = format!(
        "SELECT '', '', pg_catalog.pg_current_snapshot()::text \
         UNION ALL SELECT k.database, k.role, {LOGIN_STATE} FROM ROWS FROM (pg_catalog.unnest(:databases::text[]), pg_catalog.unnest(:roles::text[])) \
          AS k (database, role) \
      JOIN pg_catalog.pg_database d ON d.datname = k.database \
      JOIN pg_catalog.pg_roles r ON r.rolname = k.role"
    );
    Arc::new(Statement::parse(&states).expect("the statement can be parsed"))
});

/// How long the question may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The states with which open connections began.
#[derive(Debug, Default)]
pub(crate) struct LoginStates {
    known: Mutex<HashMap<Key, String>>,
    /// Counts the checks asked for, and how many of them an answer came after.
    asked: AtomicU64,
    answered: tokio::sync::Mutex<u64>,
}

impl LoginStates {
    /// Notes the state before a connection is opened. One that was noted before is kept: older
    /// connections began with it.
    pub(super) fn note(&self, key: &Key, state: String) {
        self.known.lock().entry(key.clone()).or_insert(state);
    }

    /// Closes the connections of `pool` whose login has another state now. Callers that come while
    /// PostgreSQL is asked share the next answer.
    pub(super) async fn check(
        &self,
        service: &dyn Executor,
        pool: &Pool<RoleConnector>,
    ) -> Result<()> {
        let mine = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answered = self.answered.lock().await;
        if *answered >= mine {
            return Ok(());
        }
        let covers = self.asked.load(Ordering::SeqCst);
        self.compare(service, pool).await?;
        *answered = covers;
        Ok(())
    }

    /// As [`Self::check`]; gives `pg_current_snapshot()`, which is the same as long as nothing in
    /// any database of the cluster has changed.
    pub(super) async fn compare(
        &self,
        service: &dyn Executor,
        pool: &Pool<RoleConnector>,
    ) -> Result<String> {
        let held = pool.keys();
        let mut snapshot = String::new();
        let mut states = HashMap::new();
        let options = QueryOptions {
            deadline: Some(Instant::now() + LIMIT),
            ..QueryOptions::default()
        };
        for row in texts(service, &Principal::Control, &bind(&held), &options).await? {
            let [database, role, state]: [String; 3] = row.try_into().unwrap_or_default();
            if database.is_empty() {
                snapshot = state;
            } else {
                states.insert((database, role), state);
            }
        }
        for key in self.changed(held, &states, pool) {
            tracing::info!(%key, "role changed or locked out; closing its connections");
            pool.close_role(&key.database, &key.role);
        }
        Ok(snapshot)
    }

    /// The logins whose state is not what it was. A role or database that is gone has none.
    fn changed(
        &self,
        held: Vec<Key>,
        states: &HashMap<(String, String), String>,
        pool: &Pool<RoleConnector>,
    ) -> Vec<Key> {
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
        // Connections may have been opened meanwhile.
        let held: HashSet<_> = pool.keys().into_iter().collect();
        known.retain(|key, _| held.contains(key));
        changed
    }
}

fn bind(keys: &[Key]) -> BoundStatement {
    // The text form of an array (PostgreSQL, "Array Input and Output Syntax").
    let quoted = |name: &str| format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""));
    let array = |name: fn(&Key) -> &str| {
        let names: Vec<_> = keys.iter().map(|key| quoted(name(key))).collect();
        Parameter::Text(format!("{{{}}}", names.join(",")).into())
    };
    let databases = array(|key| key.database.as_str());
    let roles = array(|key| key.role.as_str());
    BoundStatement {
        statement: STATEMENT.clone(),
        hints: vec![None; 2],
        formats: vec![None; 2],
        sets: vec![vec![databases, roles]],
        listed: false,
        places: Vec::new(),
    }
}
