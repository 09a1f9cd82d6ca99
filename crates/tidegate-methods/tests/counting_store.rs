//! A fixture: a method store that counts queries and can delay their results.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_methods::store::{MayRemove, NewMethod, Revise, StoreFuture};
use tidegate_methods::{
    MemoryMethodStore, MethodName, MethodStore, Record, Signature, Versioned, WriteOutcome,
};
use tidegate_sql::DatabaseName;
use tokio::sync::Notify;

/// A store that counts queries and can delay their results.
#[derive(Default)]
pub(crate) struct CountingStore {
    pub(crate) inner: MemoryMethodStore,
    pub(crate) fetched: AtomicUsize,
    pub(crate) hold: Option<(Notify, Notify)>,
}

impl MethodStore for CountingStore {
    fn get<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
    ) -> StoreFuture<'a, Vec<Record>> {
        self.fetched.fetch_add(1, Ordering::SeqCst);
        let response = self.inner.get(tenant, names);
        Box::pin(async move {
            if let Some((read, go)) = &self.hold {
                read.notify_one();
                go.notified().await;
            }
            response.await
        })
    }

    fn list<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, Vec<Record>> {
        self.inner.list(tenant)
    }

    fn insert<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        methods: &'a [NewMethod],
    ) -> StoreFuture<'a, WriteOutcome> {
        self.inner.insert(tenant, methods)
    }

    fn update<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
        revise: &'a Revise<'a>,
    ) -> StoreFuture<'a, WriteOutcome> {
        self.inner.update(tenant, names, revise)
    }

    fn remove<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
        may_remove: &'a MayRemove<'a>,
    ) -> StoreFuture<'a, WriteOutcome> {
        self.inner.remove(tenant, names, may_remove)
    }

    fn put_signature<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        method: &'a Versioned,
        signature: &'a Signature,
    ) -> StoreFuture<'a, bool> {
        self.inner.put_signature(tenant, method, signature)
    }

    fn remove_tenant<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, ()> {
        self.inner.remove_tenant(tenant)
    }
}
