//! The registry of the methods of all tenants.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::DatabaseName;

use crate::cache::Cache;
use crate::definition::{Definition, MemberChange, Patch, infers_the_same};
use crate::error::{Error, Result, StoreError};
use crate::json::invalid;
use crate::method::{Method, Record};
use crate::name::MethodName;
use crate::rights::Caller;
use crate::signature::Signature;
use crate::store::{MethodStore, NewMethod, Revision, WriteOutcome};

/// The default size of the cache in bytes, enough for about 40,000 methods.
const MAX_CACHED: usize = 64 << 20;

/// The methods of all tenants: a store, and a cache of methods that were read from it.
///
/// Calls look up methods in the cache first, and then in the store. The absence of a method is not
/// cached, so that a new method can be called on every node immediately. Listing and changing
/// always use the store. The registry invalidates the methods that it writes itself. For writes of
/// other nodes, the service calls [`forget`](Self::forget) for each notification, and
/// [`forget_all`](Self::forget_all) if notifications may have been missed.
pub struct Registry {
    store: Arc<dyn MethodStore>,
    cache: Cache,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cached = self.cache.len();
        f.debug_struct("Registry")
            .field("cached", &cached)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// A registry of the methods in a store.
    pub fn new(store: Arc<dyn MethodStore>) -> Self {
        Self::with_capacity(store, MAX_CACHED)
    }

    /// A registry whose cache has at most about `most` bytes.
    pub fn with_capacity(store: Arc<dyn MethodStore>, most: usize) -> Self {
        Self {
            store,
            cache: Cache::new(most),
        }
    }

    /// The cached method of this name; `None` if it is not cached. Does no I/O.
    pub fn cached(&self, tenant: &DatabaseName, name: &str) -> Option<Arc<Method>> {
        self.cache.get(tenant, name)
    }

    /// The method, from the cache or else from the store; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    pub async fn lookup(
        &self,
        tenant: &DatabaseName,
        name: &str,
    ) -> Result<Option<Arc<Method>>, StoreError> {
        if let Some(method) = self.cached(tenant, name) {
            return Ok(Some(method));
        }
        let found = self.lookup_all(tenant, &[name]).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// The methods of a batch, with at most one query of the store. The result has one entry for
    /// each name, which is `None` if the method does not exist.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    pub async fn lookup_all(
        &self,
        tenant: &DatabaseName,
        names: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Option<Arc<Method>>>, StoreError> {
        let since = self.cache.now();
        let cached = |name: &_| self.cached(tenant, AsRef::<str>::as_ref(name));
        let mut found: Vec<_> = names.iter().map(cached).collect();
        let absent = names
            .iter()
            .zip(&found)
            .filter(|(_, known)| known.is_none());
        let absent = valid(absent.map(|(name, _)| name.as_ref()));
        if absent.is_empty() {
            return Ok(found);
        }
        let records = self.store.get(tenant, &absent).await?;
        let loaded = methods(records);
        self.cache.put(tenant, &loaded, since);
        for (name, place) in names.iter().zip(&mut found) {
            if place.is_none() {
                let same = |method: &&Arc<Method>| method.name().as_str() == name.as_ref();
                *place = loaded.iter().find(same).cloned();
            }
        }
        Ok(found)
    }

    /// All methods of a tenant from the store, sorted by name.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store cannot be read.
    pub async fn list(&self, tenant: &DatabaseName) -> Result<Vec<Arc<Method>>> {
        Ok(methods(self.store.list(tenant).await?))
    }

    /// The methods with these names from the store, in the order of `names`.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] with all missing names; [`Error::Store`].
    pub async fn find(
        &self,
        tenant: &DatabaseName,
        names: &[impl AsRef<str> + Sync],
    ) -> Result<Vec<Arc<Method>>> {
        let wanted = valid(names.iter().map(AsRef::as_ref));
        let found = methods(self.store.get(tenant, &wanted).await?);
        let method_named = |name: &str| found.iter().find(|method| method.name().as_str() == name);
        let missing = names
            .iter()
            .map(AsRef::as_ref)
            .filter(|name| method_named(name).is_none());
        let missing: Vec<String> = missing.map(str::to_owned).collect();
        if !missing.is_empty() {
            return Err(Error::NotFound(missing));
        }
        let found = names.iter().filter_map(|name| method_named(name.as_ref()));
        Ok(found.cloned().collect())
    }

    /// Defines all of the methods or none. Returns their names in the order of `definitions`.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] with all names that are taken or occur twice; [`Error::Statement`];
    /// [`Error::Store`].
    pub async fn create(
        &self,
        tenant: &DatabaseName,
        creator: Caller<'_>,
        definitions: Vec<Definition>,
    ) -> Result<Vec<MethodName>> {
        for (index, definition) in definitions.iter().enumerate() {
            let index = (definitions.len() > 1).then_some(index);
            let read = definition.statement();
            read.map_err(|source| Error::Statement { index, source })?;
        }
        let names = definitions.iter().map(|definition| definition.name.clone());
        let names: Vec<_> = names.collect();
        let new = |definition| NewMethod {
            definition,
            creator: creator.user.to_owned(),
            by_owner: creator.owner,
        };
        let new: Vec<_> = definitions.into_iter().map(new).collect();
        let _forget = self.forget_when_done(tenant, &names);
        written(self.store.insert(tenant, &new).await?)?;
        Ok(names)
    }

    /// Changes all of the methods or none. Returns their names after the change. Concurrent changes
    /// of a method are serialized, and each applies to the result of the change before it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAllowed`], [`Error::AlreadyExists`] for a new name that is
    /// taken, [`Error::Request`] if several methods get the same new name, [`Error::Store`].
    pub async fn patch(
        &self,
        tenant: &DatabaseName,
        caller: Caller<'_>,
        names: &[impl AsRef<str> + Sync],
        patch: &Patch,
    ) -> Result<Vec<MethodName>> {
        let names = once(names);
        if patch.name.is_some() && names.len() > 1 {
            let problem = format!("one new name for {} methods", names.len());
            return Err(invalid("method".to_owned(), problem).into());
        }
        let before = self.named(tenant, &names).await?;
        let revise = |record: &Record| {
            let allowed = caller.may_change(&record.creator);
            allowed.then(|| revise(record, caller, patch))
        };
        let _forget = self.forget_when_done(tenant, before.iter().chain(&patch.name));
        written(self.store.update(tenant, &before, &revise).await?)?;
        Ok(patch.name.clone().map_or(before, |name| vec![name]))
    }

    /// Removes all of the methods or none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAllowed`], [`Error::Store`].
    pub async fn remove(
        &self,
        tenant: &DatabaseName,
        caller: Caller<'_>,
        names: &[impl AsRef<str> + Sync],
    ) -> Result<()> {
        let names = self.named(tenant, &once(names)).await?;
        let may_remove = |record: &Record| caller.may_change(&record.creator);
        let _forget = self.forget_when_done(tenant, &names);
        written(self.store.remove(tenant, &names, &may_remove).await?)
    }

    /// Stores the types that a dry run inferred. Stores nothing and returns `false` if the method
    /// was changed since it was read.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store failed.
    pub async fn record(
        &self,
        tenant: &DatabaseName,
        method: &Method,
        signature: &Signature,
    ) -> Result<bool, StoreError> {
        let versioned = method.versioned();
        let _forget = self.forget_when_done(tenant, [&versioned.name]);
        self.store
            .put_signature(tenant, &versioned, signature)
            .await
    }

    /// Removes all methods of a tenant, if there are any. Called when the tenant is dropped.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store failed.
    pub async fn remove_tenant(&self, tenant: &DatabaseName) -> Result<(), StoreError> {
        let removed = self.store.remove_tenant(tenant).await;
        self.forget_tenant(tenant);
        removed
    }

    /// Invalidates cached methods, after a notification that they changed.
    pub fn forget(&self, tenant: &DatabaseName, names: &[impl AsRef<str>]) {
        self.cache.forget(tenant, names);
    }

    /// Invalidates all cached methods of a tenant.
    pub fn forget_tenant(&self, tenant: &DatabaseName) {
        self.cache.forget_tenant(tenant);
    }

    /// Invalidates all cached methods. Must be called if notifications may have been missed.
    pub fn forget_all(&self) {
        self.cache.forget_all();
    }

    /// Parses the names of methods. Fails with [`Error::NotFound`] if a name is invalid. The error
    /// lists all names for which no method exists.
    async fn named(&self, tenant: &DatabaseName, names: &[&str]) -> Result<Vec<MethodName>> {
        let parsed = names.iter().filter_map(|name| MethodName::parse(name).ok());
        let parsed: Vec<_> = parsed.collect();
        if parsed.len() < names.len() {
            self.find(tenant, names).await?;
        }
        Ok(parsed)
    }

    /// Invalidates the methods when the returned guard is dropped. The guard is dropped even if the
    /// future of a write is dropped before the write ends.
    fn forget_when_done<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> ForgetOnDrop<'a> {
        let names = names.into_iter();
        ForgetOnDrop {
            cache: &self.cache,
            tenant,
            names: names.map(|name| name.as_ref().to_owned()).collect(),
        }
    }
}

struct ForgetOnDrop<'a> {
    cache: &'a Cache,
    tenant: &'a DatabaseName,
    names: Vec<String>,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.cache.forget(self.tenant, &self.names);
    }
}

/// The state of a method after a patch. The user who sends `q` becomes the author of `q`, even if
/// the text is unchanged.
fn revise(before: &Record, caller: Caller<'_>, patch: &Patch) -> Revision {
    let after = patch.apply(&before.definition);
    Revision {
        keeps_signature: infers_the_same(&before.definition, &after),
        by_owner: match patch.q {
            Some(_) => caller.owner,
            None => before.by_owner && keeps_hints(caller, patch),
        },
        definition: after,
    }
}

/// Whether the type hints are still those of the owner after the patch: the owner sends the patch,
/// or the patch keeps the hints. The author of the hints matters: a hint may name a type of
/// another user, and PostgreSQL then runs the input function that this user wrote.
fn keeps_hints(caller: Caller<'_>, patch: &Patch) -> bool {
    caller.owner || patch.type_hints == MemberChange::Keep
}

fn written(outcome: WriteOutcome) -> Result<()> {
    match outcome {
        WriteOutcome::Done => Ok(()),
        WriteOutcome::Taken(names) => Err(Error::AlreadyExists(names)),
        WriteOutcome::Refused(names) => Err(Error::NotAllowed(names)),
        WriteOutcome::Missing(names) => {
            let names = names.iter().map(ToString::to_string).collect();
            Err(Error::NotFound(names))
        }
    }
}

fn methods(records: Vec<Record>) -> Vec<Arc<Method>> {
    let methods = records.into_iter().map(Method::new);
    methods.map(Arc::new).collect()
}

/// The valid method names in `names`, sorted and without duplicates. Invalid names can be left out,
/// because no method has such a name.
fn valid<'a>(names: impl Iterator<Item = &'a str>) -> Vec<MethodName> {
    let names = names.filter_map(|name| MethodName::parse(name).ok());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Each name once, in the order in which the names first occur.
fn once(names: &[impl AsRef<str>]) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    let names = names.iter().map(AsRef::as_ref);
    names.filter(|name| seen.insert(*name)).collect()
}
