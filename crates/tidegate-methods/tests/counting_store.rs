//! A fixture: a method store that counts queries and can delay their results.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tidegate_methods::store::{MayRemove, NewMethod, Revise, StoreResult};
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

#[async_trait]
impl MethodStore for CountingStore {
    async fn get(&self, tenant: &DatabaseName, names: &[MethodName]) -> StoreResult<Vec<Record>> {
        self.fetched.fetch_add(1, Ordering::SeqCst);
        let response = self.inner.get(tenant, names).await;
        if let Some((read, go)) = &self.hold {
            read.notify_one();
            go.notified().await;
        }
        response
    }

    async fn list(&self, tenant: &DatabaseName) -> StoreResult<Vec<Record>> {
        self.inner.list(tenant).await
    }

    async fn insert(
        &self,
        tenant: &DatabaseName,
        methods: &[NewMethod],
    ) -> StoreResult<WriteOutcome> {
        self.inner.insert(tenant, methods).await
    }

    async fn update(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        revise: &Revise<'_>,
    ) -> StoreResult<WriteOutcome> {
        self.inner.update(tenant, names, revise).await
    }

    async fn remove(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        may_remove: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome> {
        self.inner.remove(tenant, names, may_remove).await
    }

    async fn put_signature(
        &self,
        tenant: &DatabaseName,
        method: &Versioned,
        signature: &Signature,
    ) -> StoreResult<bool> {
        self.inner.put_signature(tenant, method, signature).await
    }

    async fn remove_tenant(&self, tenant: &DatabaseName) -> StoreResult<()> {
        self.inner.remove_tenant(tenant).await
    }
}
