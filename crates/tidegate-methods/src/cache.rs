//! The methods at hand, so that a lookup needs no I/O.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate_sql::DatabaseName;

use crate::method::Method;
use crate::name::MethodName;

/// Methods by tenant and name. Reading takes a shared lock for the time of two lookups.
#[derive(Debug)]
pub(crate) struct Cache {
    most: usize,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    tenants: HashMap<DatabaseName, HashMap<MethodName, Arc<Method>>>,
    count: usize,
    /// How often something was forgotten.
    forgotten: u64,
}

/// When a reading of the store began, in terms of what has been forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since(u64);

impl Cache {
    /// A cache that holds at most so many methods.
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
        Since(self.read().forgotten)
    }

    /// Keeps methods that were read from the store, unless something was forgotten since: then
    /// what was read may be what should be forgotten.
    pub(crate) fn put(&self, tenant: &DatabaseName, methods: &[Arc<Method>], since: Since) {
        let mut state = self.write();
        if state.forgotten != since.0 || methods.len() > self.most {
            return;
        }
        while state.count + methods.len() > self.most {
            state.drop_tenant_other_than(tenant);
        }
        let known = state.tenants.entry(tenant.clone()).or_default();
        let before = known.len();
        for method in methods {
            known.insert(method.name().clone(), Arc::clone(method));
        }
        let added = known.len() - before;
        state.count += added;
    }

    pub(crate) fn forget(&self, tenant: &DatabaseName, names: &[impl AsRef<str>]) {
        let mut state = self.write();
        state.forgotten += 1;
        let Some(known) = state.tenants.get_mut(tenant) else {
            return;
        };
        let removed = names
            .iter()
            .filter(|name| known.remove(name.as_ref()).is_some());
        let removed = removed.count();
        if known.is_empty() {
            state.tenants.remove(tenant);
        }
        state.count -= removed;
    }

    pub(crate) fn forget_tenant(&self, tenant: &DatabaseName) {
        let mut state = self.write();
        state.forgotten += 1;
        state.drop_tenant(tenant);
    }

    pub(crate) fn forget_all(&self) {
        let mut state = self.write();
        *state = State {
            forgotten: state.forgotten + 1,
            ..State::default()
        };
    }

    pub(crate) fn len(&self) -> usize {
        self.read().count
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room: another tenant's methods go, or this one's when there is no other.
    fn drop_tenant_other_than(&mut self, tenant: &DatabaseName) {
        let other = self.tenants.keys().find(|other| *other != tenant).cloned();
        self.drop_tenant(&other.unwrap_or_else(|| tenant.clone()));
    }

    fn drop_tenant(&mut self, tenant: &DatabaseName) {
        let dropped = self.tenants.remove(tenant);
        self.count -= dropped.map_or(0, |methods| methods.len());
    }
}
