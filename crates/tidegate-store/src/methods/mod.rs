//! The store of methods in the control database.

mod row;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use tidegate_methods::store::{MayRemove, NewMethod, Revise, StoreResult};
use tidegate_methods::{
    MethodName, MethodStore, Record, Signature, StoreError, Versioned, WriteOutcome,
};
use tidegate_sql::{DatabaseName, Executor};

use crate::error::Error;
use crate::query::{Argument, Database, Query};
use crate::row::{boolean, nothing};

static GET: Query = Query::new(
    "select name, q, type_hints, type_formats, output_format, creator, by_owner, \
     signature, version \
     from tidegate.methods where database = :database \
     and name in (select pg_catalog.json_array_elements_text(:names::json))",
);
static LIST: Query = Query::new(
    "select name, q, type_hints, type_formats, output_format, creator, by_owner, \
     signature, version \
     from tidegate.methods where database = :database order by name collate \"C\"",
);
// If the signature equals the stored signature, nothing is written, and the other nodes are not
// notified.
static PUT_SIGNATURE: Query = Query::new(
    "with known as (select database, name, version, signature from tidegate.methods \
       where database = :database and name = :name and version = :version::bigint), \
     changed as (update tidegate.methods m set signature = :signature::text from known \
       where m.database = known.database and m.name = known.name and m.version = known.version \
       and known.signature is distinct from :signature::text returning m.name) \
     select exists (select from known) and \
       (select pg_catalog.count(pg_catalog.pg_notify('tidegate', \
         'method ' || name || ' ' || :database::text)) from changed) >= 0",
);
static REMOVE_TENANT: Query = Query::new(
    "with gone as (delete from tidegate.methods where database = :database) \
     select pg_catalog.pg_notify('tidegate', 'methods ' || :database::text)::text",
);

/// The methods of all tenants in the schema `tidegate` of the control database.
///
/// The writes of a tenant are serialised. Other nodes are notified of changes by [`crate::Change`].
/// They are not notified of new methods, because nodes never cache that a method does not exist.
#[derive(Clone, Debug)]
pub struct PgMethodStore {
    database: Database,
}

impl PgMethodStore {
    /// A store in the control database that `executor` uses. [`crate::migrate`] must have run
    /// before.
    pub fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            database: Database::new(executor),
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable(_) => Self::Unavailable(Box::new(error)),
            error => Self::Failed(Box::new(error)),
        }
    }
}

#[async_trait]
impl MethodStore for PgMethodStore {
    async fn get(&self, tenant: &DatabaseName, names: &[MethodName]) -> StoreResult<Vec<Record>> {
        let names = row::names(names)?;
        let values: [Argument<'_>; 2] = [&tenant.as_str(), &names];
        Ok(self.database.rows(&GET, &values, row::read).await?)
    }

    async fn list(&self, tenant: &DatabaseName) -> StoreResult<Vec<Record>> {
        let values: [Argument<'_>; 1] = [&tenant.as_str()];
        Ok(self.database.rows(&LIST, &values, row::read).await?)
    }

    async fn insert(
        &self,
        tenant: &DatabaseName,
        methods: &[NewMethod],
    ) -> StoreResult<WriteOutcome> {
        Ok(write::insert(&self.database, tenant, methods).await?)
    }

    async fn update(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        revise: &Revise<'_>,
    ) -> StoreResult<WriteOutcome> {
        Ok(write::update(&self.database, tenant, names, revise).await?)
    }

    async fn remove(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        may_remove: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome> {
        Ok(write::remove(&self.database, tenant, names, may_remove).await?)
    }

    async fn put_signature(
        &self,
        tenant: &DatabaseName,
        method: &Versioned,
        signature: &Signature,
    ) -> StoreResult<bool> {
        let (tenant, name, signature) =
            (tenant.as_str(), method.name.as_str(), signature.to_json());
        let values: [Argument<'_>; 4] = [&tenant, &name, &method.version, &signature];
        let stored = self.database.row(&PUT_SIGNATURE, &values, boolean).await?;
        Ok(stored == Some(true))
    }

    async fn remove_tenant(&self, tenant: &DatabaseName) -> StoreResult<()> {
        let values: [Argument<'_>; 1] = [&tenant.as_str()];
        self.database.row(&REMOVE_TENANT, &values, nothing).await?;
        Ok(())
    }
}
