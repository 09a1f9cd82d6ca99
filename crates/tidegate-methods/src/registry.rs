//! The methods of all tenants, as a node knows them.

use std::fmt;
use std::sync::Arc;

use tidegate_sql::DatabaseName;

use crate::cache::Cache;
use crate::definition::{Change, Definition, Patch, infers_the_same};
use crate::error::{Error, Result};
use crate::json::invalid;
use crate::method::{Method, Record};
use crate::name::MethodName;
use crate::rights::Actor;
use crate::signature::Signature;
use crate::store::{MethodStore, NewMethod, Revision, StoreError, Written};

/// Bytes of methods that a registry keeps at hand unless told otherwise: some 40,000 of them.
const MOST_CACHED: usize = 64 << 20;

/// The methods of all tenants: a store with a cache before it.
///
/// Calls look methods up in the cache, and what is not there in the store; that there is no such
/// method is not kept, so that a method can be called on every node as soon as it is defined.
/// Listing and changing always ask the store. After each of its own writes the registry forgets
/// what it knows of the methods; for the writes of other nodes the server calls
/// [`forget`](Self::forget) upon their notices, and [`forget_all`](Self::forget_all) when notices
/// may have been missed.
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
    /// A registry before a store.
    pub fn new(store: Arc<dyn MethodStore>) -> Self {
        Self::with_capacity(store, MOST_CACHED)
    }

    /// A registry that keeps methods of about so many bytes at hand, at most.
    pub fn with_capacity(store: Arc<dyn MethodStore>, most: usize) -> Self {
        Self {
            store,
            cache: Cache::new(most),
        }
    }

    /// The method to call, if it is at hand; no I/O.
    pub fn cached(&self, tenant: &DatabaseName, name: &str) -> Option<Arc<Method>> {
        self.cache.get(tenant, name)
    }

    /// The method to call; the store is asked only when it is not at hand.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
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

    /// The methods of a batch, one for each name; the store is asked once at most.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
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

    /// All methods of a tenant by name, from the store.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn list(&self, tenant: &DatabaseName) -> Result<Vec<Arc<Method>>> {
        Ok(methods(self.store.list(tenant).await?))
    }

    /// The methods of these names in this order, from the store.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] that names all that are missing; [`Error::Store`].
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

    /// Defines methods, all or none; returns their names in order.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] that names all that are taken, also twice in `definitions`;
    /// [`Error::Statement`]; [`Error::Store`].
    pub async fn create(
        &self,
        tenant: &DatabaseName,
        creator: Actor<'_>,
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

    /// Changes methods, all or none; returns their names after the change. Changes of one method
    /// take turns, each made from what the one before left: what a patch does not name stays.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAllowed`], [`Error::AlreadyExists`] for a new name that is
    /// taken, [`Error::Request`] for one new name of several methods, [`Error::Store`].
    pub async fn patch(
        &self,
        tenant: &DatabaseName,
        who: Actor<'_>,
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
            let allowed = who.may_change(&record.creator);
            allowed.then(|| revise(record, who, patch))
        };
        let _forget = self.forget_when_done(tenant, before.iter().chain(&patch.name));
        written(self.store.update(tenant, &before, &revise).await?)?;
        Ok(patch.name.clone().map_or(before, |name| vec![name]))
    }

    /// Removes methods, all or none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::NotAllowed`], [`Error::Store`].
    pub async fn remove(
        &self,
        tenant: &DatabaseName,
        who: Actor<'_>,
        names: &[impl AsRef<str> + Sync],
    ) -> Result<()> {
        let names = self.named(tenant, &once(names)).await?;
        let may_remove = |record: &Record| who.may_change(&record.creator);
        let _forget = self.forget_when_done(tenant, &names);
        written(self.store.remove(tenant, &names, &may_remove).await?)
    }

    /// Keeps what a dry run inferred of a method. Whether the method is still the one that was
    /// described; otherwise nothing is kept.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
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

    /// Removes all methods of a tenant that is dropped; that there are none is no error.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn remove_tenant(&self, tenant: &DatabaseName) -> Result<(), StoreError> {
        let removed = self.store.remove_tenant(tenant).await;
        self.forget_tenant(tenant);
        removed
    }

    /// Drops methods from the cache, upon a notice that they have changed.
    pub fn forget(&self, tenant: &DatabaseName, names: &[impl AsRef<str>]) {
        self.cache.forget(tenant, names);
    }

    /// Drops a tenant from the cache.
    pub fn forget_tenant(&self, tenant: &DatabaseName) {
        self.cache.forget_tenant(tenant);
    }

    /// Drops everything from the cache, when notices may have been missed.
    pub fn forget_all(&self) {
        self.cache.forget_all();
    }

    /// The names as names of methods; the error for those that can be none names all that are
    /// missing.
    async fn named(&self, tenant: &DatabaseName, names: &[&str]) -> Result<Vec<MethodName>> {
        let parsed = names.iter().filter_map(|name| MethodName::parse(name).ok());
        let parsed: Vec<_> = parsed.collect();
        if parsed.len() < names.len() {
            self.find(tenant, names).await?;
        }
        Ok(parsed)
    }

    /// Forgets the methods when the guard is dropped: after a write, also after one whose caller
    /// went away while it was under way.
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

/// What a patch makes of a method. Whoever gives `q` has written it, also if it stays the same.
fn revise(before: &Record, who: Actor<'_>, patch: &Patch) -> Revision {
    let after = patch.apply(&before.definition);
    Revision {
        keeps_signature: infers_the_same(&before.definition, &after),
        by_owner: match patch.q {
            Some(_) => who.owner,
            None => before.by_owner && keeps_hints(who, patch),
        },
        definition: after,
    }
}

/// Whether the types that a method asks for are still the owner's. A hint can name a type whose
/// input function is anybody's.
fn keeps_hints(who: Actor<'_>, patch: &Patch) -> bool {
    who.owner || patch.type_hints == Change::Keep
}

fn written(outcome: Written) -> Result<()> {
    match outcome {
        Written::Done => Ok(()),
        Written::Taken(names) => Err(Error::AlreadyExists(names)),
        Written::Refused(names) => Err(Error::NotAllowed(names)),
        Written::Missing(names) => {
            let names = names.iter().map(ToString::to_string).collect();
            Err(Error::NotFound(names))
        }
    }
}

fn methods(records: Vec<Record>) -> Vec<Arc<Method>> {
    let methods = records.into_iter().map(Method::new);
    methods.map(Arc::new).collect()
}

/// The names that can be names of methods, each once: others need not be looked for.
fn valid<'a>(names: impl Iterator<Item = &'a str>) -> Vec<MethodName> {
    let names = names.filter_map(|name| MethodName::parse(name).ok());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Each name once, in the order of its first place.
fn once(names: &[impl AsRef<str>]) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    let names = names.iter().map(AsRef::as_ref);
    names.filter(|name| seen.insert(*name)).collect()
}
