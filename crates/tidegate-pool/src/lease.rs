//! A connection on loan.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::time::Instant;

use super::Inner;
use super::connector::{Condition, Connector, Key};
use super::entry::Entry;

/// A role that may have so many connections has one to share.
const SEVERAL: usize = 4;

/// A connection on loan; dropping it gives it back.
///
/// The pool then asks the connector for its condition: what is certain is lent again, at once or
/// after a reset in the background; everything else is closed.
pub struct Lease<K: Connector> {
    inner: Arc<Inner<K>>,
    /// Empty only while it is dropped.
    entry: Option<Box<Entry<K::Connection>>>,
    session_changed: bool,
}

impl<K: Connector> Lease<K> {
    pub(super) fn new(
        inner: Arc<Inner<K>>,
        entry: Box<Entry<K::Connection>>,
        session_changed: bool,
    ) -> Self {
        Self {
            inner,
            entry: Some(entry),
            session_changed,
        }
    }

    /// Whether another session of the same user had this connection before, so that a soft reset
    /// must run before anything else.
    pub fn session_changed(&self) -> bool {
        self.session_changed
    }

    /// The database and the role that logged in.
    pub fn key(&self) -> &Key {
        &self.entry().key
    }

    /// Whether a waiting request could use this connection when it is returned, or it is to be closed
    /// then. Requests of a role that has several are better off sharing it.
    pub fn is_missed(&self) -> bool {
        let state = self.inner.state.lock();
        let now = Instant::now();
        let own_may_wait = state.settings.of_user() >= SEVERAL;
        let role = state.role(self.key());
        let own_waits = role.is_some_and(|role| !role.waiters.is_empty());
        state.is_wanted_by_another_role(self.key(), now)
            || (own_waits && !own_may_wait)
            || state.is_retired(self.entry(), now)
    }

    /// The connector of its pool.
    pub fn connector(&self) -> &K {
        &self.inner.connector
    }

    /// Closes the connection instead of giving it back.
    pub fn discard(mut self) {
        if let Some(entry) = self.entry.take() {
            self.inner.give_back(entry, Condition::Uncertain);
        }
    }

    fn entry(&self) -> &Entry<K::Connection> {
        self.entry
            .as_ref()
            .expect("a lease has its connection until it is dropped")
    }
}

impl<K: Connector> Deref for Lease<K> {
    type Target = K::Connection;

    fn deref(&self) -> &Self::Target {
        &self.entry().connection
    }
}

impl<K: Connector> DerefMut for Lease<K> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let entry = self
            .entry
            .as_mut()
            .expect("a lease has its connection until it is dropped");
        &mut entry.connection
    }
}

impl<K: Connector> Drop for Lease<K> {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            let condition = self.inner.connector.condition(&mut entry.connection);
            self.inner.give_back(entry, condition);
        }
    }
}

impl<K: Connector> fmt::Debug for Lease<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", self.key())
            .field("session_changed", &self.session_changed)
            .finish_non_exhaustive()
    }
}
