//! A store in memory: for tests, for examples, for whoever embeds methods without a database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_sql::DatabaseName;

use crate::method::Record;
use crate::name::MethodName;
use crate::signature::Signature;
use crate::store::{MethodStore, NewMethod, Revision, StoreFuture, Versioned, Written};

/// Keeps everything in this process and loses it with it. One lock makes every step atomic.
#[derive(Debug, Default)]
pub struct MemoryMethodStore(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    tenants: HashMap<DatabaseName, Methods>,
    last_version: u64,
}

type Methods = BTreeMap<MethodName, Record>;

impl MemoryMethodStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step that is done by the time it is awaited.
fn done<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl MethodStore for MemoryMethodStore {
    fn get<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
    ) -> StoreFuture<'a, Vec<Record>> {
        let tables = self.tables();
        let methods = tables.tenants.get(tenant);
        let found = names.iter().filter_map(|name| methods?.get(name));
        done(found.cloned().collect())
    }

    fn list<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, Vec<Record>> {
        let tables = self.tables();
        let methods = tables.tenants.get(tenant);
        done(
            methods
                .into_iter()
                .flat_map(BTreeMap::values)
                .cloned()
                .collect(),
        )
    }

    fn insert<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        methods: &'a [NewMethod],
    ) -> StoreFuture<'a, Written> {
        done(self.tables().insert(tenant, methods))
    }

    fn update<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        revisions: &'a [Revision],
    ) -> StoreFuture<'a, Written> {
        done(self.tables().update(tenant, revisions))
    }

    fn remove<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        methods: &'a [Versioned],
    ) -> StoreFuture<'a, Written> {
        let mut tables = self.tables();
        let known = tables.tenants.entry(tenant.clone()).or_default();
        let versions = methods.iter().map(|method| (&method.name, method.version));
        let outcome = check(known, versions);
        if outcome == Written::Done {
            for method in methods {
                known.remove(&method.name);
            }
        }
        done(outcome)
    }

    fn put_signature<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        method: &'a Versioned,
        signature: &'a Signature,
    ) -> StoreFuture<'a, bool> {
        let mut tables = self.tables();
        let methods = tables.tenants.get_mut(tenant);
        let record = methods.and_then(|methods| methods.get_mut(&method.name));
        let record = record.filter(|record| record.version == method.version);
        let found = record.map(|record| record.signature = Some(signature.clone()));
        done(found.is_some())
    }

    fn remove_tenant<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, ()> {
        self.tables().tenants.remove(tenant);
        done(())
    }
}

impl Tables {
    fn version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    fn insert(&mut self, tenant: &DatabaseName, new: &[NewMethod]) -> Written {
        let names = new.iter().map(|method| &method.definition.name);
        let taken = taken(self.tenants.get(tenant), names);
        if !taken.is_empty() {
            return Written::Taken(taken);
        }
        for method in new {
            let record = Record {
                definition: method.definition.clone(),
                creator: method.creator.clone(),
                signature: None,
                version: self.version(),
            };
            self.put(tenant, record);
        }
        Written::Done
    }

    fn update(&mut self, tenant: &DatabaseName, revisions: &[Revision]) -> Written {
        let known = self.tenants.entry(tenant.clone()).or_default();
        let versions = revisions
            .iter()
            .map(|revision| (&revision.name, revision.version));
        let outcome = check(known, versions);
        if outcome != Written::Done {
            return outcome;
        }
        let mut after = known.clone();
        let before: Vec<Record> = revisions
            .iter()
            .filter_map(|revision| after.remove(&revision.name))
            .collect();
        let names = revisions.iter().map(|revision| &revision.definition.name);
        let taken = taken(Some(&after), names);
        if !taken.is_empty() {
            return Written::Taken(taken);
        }
        self.tenants.insert(tenant.clone(), after);
        for (revision, before) in revisions.iter().zip(before) {
            let record = Record {
                definition: revision.definition.clone(),
                signature: before.signature.filter(|_| revision.keeps_signature),
                creator: before.creator,
                version: self.version(),
            };
            self.put(tenant, record);
        }
        Written::Done
    }

    fn put(&mut self, tenant: &DatabaseName, record: Record) {
        let methods = self.tenants.entry(tenant.clone()).or_default();
        methods.insert(record.definition.name.clone(), record);
    }
}

/// Whether the methods are there in these versions.
fn check<'a>(known: &Methods, versions: impl Iterator<Item = (&'a MethodName, u64)>) -> Written {
    let (mut missing, mut changed) = (Vec::new(), Vec::new());
    for (name, version) in versions {
        match known.get(name) {
            None => missing.push(name.clone()),
            Some(record) if record.version != version => changed.push(name.clone()),
            Some(_) => {}
        }
    }
    match (missing.is_empty(), changed.is_empty()) {
        (false, _) => Written::Missing(missing),
        (true, false) => Written::Changed(changed),
        (true, true) => Written::Done,
    }
}

/// The names that are taken, by known methods or by one before in the same call.
fn taken<'a>(
    known: Option<&Methods>,
    names: impl Iterator<Item = &'a MethodName>,
) -> Vec<MethodName> {
    let mut seen = BTreeSet::new();
    let taken = names.filter(|name| {
        let again = !seen.insert(*name);
        again || known.is_some_and(|known| known.contains_key(*name))
    });
    taken.cloned().collect()
}
