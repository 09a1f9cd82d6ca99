//! A connection of the pool, and a connection that is checked out.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tidegate_sql::RoleUse;
use tokio::time::Instant;

use super::Inner;
use super::connector::{Connector, PoolKey, Recycle};

/// A role that may have at least this number of connections can multiplex its requests on some of
/// them. For a connection of such a role, [`PooledConnection::is_wanted`] therefore ignores waiting
/// requests of the same role.
const SEVERAL: usize = 4;

/// A connection and the data that the pool keeps about it.
pub(super) struct PoolEntry<K: Connector> {
    pub(super) connection: K::Connection,
    pub(super) key: PoolKey,
    /// The number of the event at which the pool decided to open the connection. Later connections
    /// have higher numbers.
    pub(super) serial: u64,
    pub(super) opened: Instant,
    pub(super) idle_since: Instant,
    /// The OAuth session that used the connection last; `None` before the first use.
    pub(super) session: Option<RoleUse>,
}

/// A connection that is checked out. Dropping it returns the connection to the pool.
///
/// The pool then asks the connector whether to reuse the connection immediately, to reset it in the
/// background, or to close it.
pub struct PooledConnection<K: Connector> {
    inner: Arc<Inner<K>>,
    /// `None` only while the value is dropped or discarded.
    entry: Option<Box<PoolEntry<K>>>,
    session_changed: bool,
}

impl<K: Connector> PooledConnection<K> {
    pub(super) fn new(
        inner: Arc<Inner<K>>,
        entry: Box<PoolEntry<K>>,
        session_changed: bool,
    ) -> Self {
        Self {
            inner,
            entry: Some(entry),
            session_changed,
        }
    }

    /// Whether another OAuth session of the same user used this connection before. If so, reset the
    /// PostgreSQL session before you use the connection.
    pub fn session_changed(&self) -> bool {
        self.session_changed
    }

    /// The database and the role that logged in.
    pub fn key(&self) -> &PoolKey {
        &self.entry().key
    }

    /// Whether the connection should be returned, because a waiting request could then be served,
    /// or because the pool would close the connection. A waiting request of the connection's own
    /// role does not count if the role may have at least `SEVERAL` connections, because the
    /// request can then be multiplexed.
    pub fn is_wanted(&self) -> bool {
        let state = self.inner.state.lock();
        let now = Instant::now();
        let own_may_wait = state.settings.of_user() >= SEVERAL;
        let role = state.role(self.key());
        let own_waits = role.is_some_and(|role| !role.waiters.is_empty());
        state.is_wanted_by_another_role(self.key(), now)
            || (own_waits && !own_may_wait)
            || state.is_retired(self.entry(), now)
    }

    /// The connector of the connection's pool.
    pub fn connector(&self) -> &K {
        &self.inner.connector
    }

    /// Closes the connection instead of returning it.
    pub fn discard(mut self) {
        if let Some(entry) = self.entry.take() {
            self.inner.return_connection(entry, Recycle::Discard);
        }
    }

    fn entry(&self) -> &PoolEntry<K> {
        self.entry
            .as_ref()
            .expect("a lease has its connection until it is dropped")
    }
}

impl<K: Connector> Deref for PooledConnection<K> {
    type Target = K::Connection;

    fn deref(&self) -> &Self::Target {
        &self.entry().connection
    }
}

impl<K: Connector> DerefMut for PooledConnection<K> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let entry = self
            .entry
            .as_mut()
            .expect("a lease has its connection until it is dropped");
        &mut entry.connection
    }
}

impl<K: Connector> Drop for PooledConnection<K> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            let recycle = self.inner.connector.recycle(&mut entry.connection);
            self.inner.return_connection(entry, recycle);
        }
    }
}

impl<K: Connector> fmt::Debug for PooledConnection<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledConnection")
            .field("key", self.key())
            .field("session_changed", &self.session_changed)
            .finish_non_exhaustive()
    }
}
