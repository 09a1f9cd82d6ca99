//! A store in memory, for tests, examples, and programs that embed methods without a database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tidegate_sql::DatabaseName;

use crate::method::{Record, Versioned};
use crate::name::MethodName;
use crate::signature::Signature;
use crate::store::{MayRemove, MethodStore, NewMethod, Revise, StoreResult, WriteOutcome};

/// A store that keeps methods in this process. One lock makes every operation atomic.
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

#[async_trait]
impl MethodStore for MemoryMethodStore {
    async fn get(&self, tenant: &DatabaseName, names: &[MethodName]) -> StoreResult<Vec<Record>> {
        let tables = self.tables();
        let methods = tables.tenants.get(tenant);
        let found = names.iter().filter_map(|name| methods?.get(name));
        Ok(found.cloned().collect())
    }

    async fn list(&self, tenant: &DatabaseName) -> StoreResult<Vec<Record>> {
        let tables = self.tables();
        let methods = tables.tenants.get(tenant);
        Ok(methods
            .into_iter()
            .flat_map(BTreeMap::values)
            .cloned()
            .collect())
    }

    async fn insert(
        &self,
        tenant: &DatabaseName,
        methods: &[NewMethod],
    ) -> StoreResult<WriteOutcome> {
        Ok(self.tables().insert(tenant, methods))
    }

    async fn update(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        revise: &Revise<'_>,
    ) -> StoreResult<WriteOutcome> {
        Ok(self.tables().update(tenant, names, revise))
    }

    async fn remove(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        may_remove: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome> {
        Ok(self.tables().remove(tenant, names, may_remove))
    }

    async fn put_signature(
        &self,
        tenant: &DatabaseName,
        method: &Versioned,
        signature: &Signature,
    ) -> StoreResult<bool> {
        let mut tables = self.tables();
        let methods = tables.tenants.get_mut(tenant);
        let record = methods.and_then(|methods| methods.get_mut(&method.name));
        let record = record.filter(|record| record.version == method.version);
        let found = record.map(|record| record.signature = Some(signature.clone()));
        Ok(found.is_some())
    }

    async fn remove_tenant(&self, tenant: &DatabaseName) -> StoreResult<()> {
        self.tables().tenants.remove(tenant);
        Ok(())
    }
}

impl Tables {
    fn version(&mut self) -> u64 {
        self.last_version += 1;
        self.last_version
    }

    fn insert(&mut self, tenant: &DatabaseName, new: &[NewMethod]) -> WriteOutcome {
        let names = new.iter().map(|method| &method.definition.name);
        let taken = taken(self.tenants.get(tenant), names);
        if !taken.is_empty() {
            return WriteOutcome::Taken(taken);
        }
        for method in new {
            let record = Record {
                definition: method.definition.clone(),
                creator: method.creator.clone(),
                by_owner: method.by_owner,
                signature: None,
                version: self.version(),
            };
            self.put(tenant, record);
        }
        WriteOutcome::Done
    }

    fn update(
        &mut self,
        tenant: &DatabaseName,
        names: &[MethodName],
        revise: &Revise<'_>,
    ) -> WriteOutcome {
        let known = self.tenants.entry(tenant.clone()).or_default();
        let before = match existing(known, names) {
            Ok(before) => before,
            Err(missing) => return missing,
        };
        let revisions: Vec<_> = before.iter().map(revise).collect();
        let refused = names.iter().zip(&revisions);
        let refused = refused.filter(|(_, revision)| revision.is_none());
        let refused: Vec<_> = refused.map(|(name, _)| name.clone()).collect();
        if !refused.is_empty() {
            return WriteOutcome::Refused(refused);
        }
        let revisions: Vec<_> = revisions.into_iter().flatten().collect();
        let mut after = known.clone();
        after.retain(|name, _| !names.contains(name));
        let names = revisions.iter().map(|revision| &revision.definition.name);
        let taken = taken(Some(&after), names);
        if !taken.is_empty() {
            return WriteOutcome::Taken(taken);
        }
        self.tenants.insert(tenant.clone(), after);
        for (revision, before) in revisions.into_iter().zip(before) {
            let record = Record {
                definition: revision.definition,
                signature: before.signature.filter(|_| revision.keeps_signature),
                creator: before.creator,
                by_owner: revision.by_owner,
                version: self.version(),
            };
            self.put(tenant, record);
        }
        WriteOutcome::Done
    }

    fn remove(
        &mut self,
        tenant: &DatabaseName,
        names: &[MethodName],
        may_remove: &MayRemove<'_>,
    ) -> WriteOutcome {
        let known = self.tenants.entry(tenant.clone()).or_default();
        let before = match existing(known, names) {
            Ok(before) => before,
            Err(missing) => return missing,
        };
        let refused = names.iter().zip(&before);
        let refused = refused.filter(|(_, record)| !may_remove(record));
        let refused: Vec<_> = refused.map(|(name, _)| name.clone()).collect();
        if !refused.is_empty() {
            return WriteOutcome::Refused(refused);
        }
        known.retain(|name, _| !names.contains(name));
        WriteOutcome::Done
    }

    fn put(&mut self, tenant: &DatabaseName, record: Record) {
        let methods = self.tenants.entry(tenant.clone()).or_default();
        methods.insert(record.definition.name.clone(), record);
    }
}

/// The methods with these names. If some do not exist, the error is [`WriteOutcome::Missing`] with
/// their names.
fn existing(known: &Methods, names: &[MethodName]) -> Result<Vec<Record>, WriteOutcome> {
    let missing = names.iter().filter(|name| !known.contains_key(*name));
    let missing: Vec<_> = missing.cloned().collect();
    if missing.is_empty() {
        let found = names.iter().filter_map(|name| known.get(name));
        Ok(found.cloned().collect())
    } else {
        Err(WriteOutcome::Missing(missing))
    }
}

/// The names in `names` that are taken: an existing method has the name, or the name occurs earlier
/// in `names`.
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
