//! A cache of methods, so that a lookup needs no I/O.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate_sql::DatabaseName;

use crate::method::Method;
use crate::name::MethodName;

/// A cache of methods by tenant and name. A lookup takes a shared lock and makes two hash lookups.
#[derive(Debug)]
pub(crate) struct Cache {
    most: usize,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    tenants: HashMap<DatabaseName, HashMap<MethodName, Arc<Method>>>,
    /// The approximate size of all cached methods in bytes, as [`weight`] estimates it.
    bytes: usize,
    /// The number of invalidations so far.
    invalidations: u64,
}

/// The number of invalidations that had happened before a read of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(u64);

impl Cache {
    /// A cache for methods that have at most `most` bytes together.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            state: RwLock::default(),
        }
    }

    pub(crate) fn get(&self, tenant: &DatabaseName, name: &str) -> Option<Arc<Method>> {
        self.read().tenants.get(tenant)?.get(name).cloned()
    }

    pub(crate) fn now(&self) -> Since {
        Since(self.read().invalidations)
    }

    /// Caches methods that were read from the store. If there was an invalidation since the read
    /// began, the methods may be stale and are not cached. If the cache is full, evicts the methods
    /// of other tenants first.
    pub(crate) fn put(&self, tenant: &DatabaseName, methods: &[Arc<Method>], since: Since) {
        let mut state = self.write();
        let bytes: usize = methods.iter().map(|method| weight(method)).sum();
        if state.invalidations != since.0 || bytes > self.most {
            return;
        }
        while state.bytes + bytes > self.most {
            state.drop_tenant_other_than(tenant);
        }
        let known = state.tenants.entry(tenant.clone()).or_default();
        let insert = |method: &Arc<Method>| known.insert(method.name().clone(), Arc::clone(method));
        let replaced = methods.iter().filter_map(insert);
        let replaced: usize = replaced.map(|method| weight(&method)).sum();
        state.bytes = state.bytes + bytes - replaced;
    }

    pub(crate) fn forget(&self, tenant: &DatabaseName, names: &[impl AsRef<str>]) {
        let mut state = self.write();
        state.invalidations += 1;
        let Some(known) = state.tenants.get_mut(tenant) else {
            return;
        };
        let removed = names.iter().filter_map(|name| known.remove(name.as_ref()));
        let removed: usize = removed.map(|method| weight(&method)).sum();
        if known.is_empty() {
            state.tenants.remove(tenant);
        }
        state.bytes -= removed;
    }

    pub(crate) fn forget_tenant(&self, tenant: &DatabaseName) {
        let mut state = self.write();
        state.invalidations += 1;
        state.drop_tenant(tenant);
    }

    pub(crate) fn forget_all(&self) {
        let mut state = self.write();
        *state = State {
            invalidations: state.invalidations + 1,
            ..State::default()
        };
    }

    pub(crate) fn len(&self) -> usize {
        self.read().tenants.values().map(HashMap::len).sum()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Evicts the methods of another tenant, or the methods of `tenant` if there is no other
    /// tenant.
    fn drop_tenant_other_than(&mut self, tenant: &DatabaseName) {
        let other = self.tenants.keys().find(|other| *other != tenant).cloned();
        self.drop_tenant(&other.unwrap_or_else(|| tenant.clone()));
    }

    fn drop_tenant(&mut self, tenant: &DatabaseName) {
        let dropped = self.tenants.remove(tenant);
        let dropped = dropped.iter().flat_map(HashMap::values);
        self.bytes -= dropped.map(|method| weight(method)).sum::<usize>();
    }
}

/// The approximate size of a method in bytes: its texts, the parsed statement and the overhead.
fn weight(method: &Method) -> usize {
    let definition = method.definition();
    let texts = definition.type_hints.iter().chain(&definition.type_formats);
    let texts: usize = texts.map(|(name, text)| name.len() + text.len()).sum();
    let signature = method.signature();
    let fields = signature.map_or(0, |known| known.parameters.len() + known.columns.len());
    1024 + 3 * definition.q.len() + 2 * texts + 256 * fields
}
