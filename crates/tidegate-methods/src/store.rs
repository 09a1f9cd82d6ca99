//! The port to the store of methods.
//!
//! Rules for an implementation:
//!
//! - Every function of [`MethodStore`] takes the tenant as its first argument, and neither reads
//!   nor writes methods of other tenants.
//! - If the state of the store prevents a write, the result is a [`WriteOutcome`], not an error.
//! - A write of several methods is atomic, even if other writes run concurrently.
//! - Each write gives its methods a new version. No method of the same name, including removed
//!   methods, has ever had this version. [`MethodStore::put_signature`] does not change the
//!   version.
//! - A write that changes or removes a method notifies the other nodes. A new method needs no
//!   notification, because nodes do not cache that a method is missing. The notification has the
//!   tenant and the names (for a rename, the old name). The nodes then call
//!   [`Registry::forget`](crate::Registry::forget).

use async_trait::async_trait;
use tidegate_sql::DatabaseName;

use crate::definition::Definition;
use crate::error::StoreError;
use crate::method::{Record, Versioned};
use crate::name::MethodName;
use crate::signature::Signature;

/// The result of the functions of [`MethodStore`].
pub type StoreResult<T> = Result<T, StoreError>;

/// The outcome of a write. If it is not `Done`, nothing was written, and the outcome has the names
/// that prevented the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The methods were written.
    Done,
    /// These names are taken by other methods, or occur twice in the call.
    Taken(Vec<MethodName>),
    /// These methods do not exist.
    Missing(Vec<MethodName>),
    /// The user may not change these methods.
    Refused(Vec<MethodName>),
}

/// A method to be added.
#[derive(Clone, Debug)]
pub struct NewMethod {
    /// The definition of the method.
    pub definition: Definition,
    /// The name of the user who defines the method.
    pub creator: String,
    /// Whether the creator is the tenant's owner.
    pub by_owner: bool,
}

/// The new state of a method.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The new definition. If it has another name, the method is renamed.
    pub definition: Definition,
    /// Whether the types that were inferred for the method are still valid.
    pub keeps_signature: bool,
    /// The new value of [`Record::by_owner`].
    pub by_owner: bool,
}

/// A function that returns the new state of a method; `None` rejects the change.
pub type Revise<'a> = dyn Fn(&Record) -> Option<Revision> + Send + Sync + 'a;

/// A function that returns whether a method may be removed.
pub type MayRemove<'a> = dyn Fn(&Record) -> bool + Send + Sync + 'a;

/// The port to the store of methods. The trait is object-safe; a registry has a `dyn MethodStore`.
#[async_trait]
pub trait MethodStore: Send + Sync {
    /// The existing methods with these names, in any order.
    async fn get(&self, tenant: &DatabaseName, names: &[MethodName]) -> StoreResult<Vec<Record>>;

    /// All methods of the tenant, sorted by the bytes of their names.
    async fn list(&self, tenant: &DatabaseName) -> StoreResult<Vec<Record>>;

    /// Adds methods without inferred types. The outcome is `Done` or `Taken`.
    async fn insert(
        &self,
        tenant: &DatabaseName,
        methods: &[NewMethod],
    ) -> StoreResult<WriteOutcome>;

    /// Changes methods. `names` must not contain a name twice. The outcome is `Done`, `Missing` or
    /// `Refused`; or `Taken` if a method would be renamed to a name that is in use. Concurrent
    /// writes are serialised across all nodes: between the call of `revise` and the write of its
    /// result, no other write of the method happens.
    async fn update(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        revise: &Revise<'_>,
    ) -> StoreResult<WriteOutcome>;

    /// Removes methods. `names` must not contain a name twice. The outcome is `Done`, `Missing` or
    /// `Refused`. Concurrent writes are serialised as in [`update`](Self::update).
    async fn remove(
        &self,
        tenant: &DatabaseName,
        names: &[MethodName],
        may_remove: &MayRemove<'_>,
    ) -> StoreResult<WriteOutcome>;

    /// Stores the types that a dry run inferred, if the method still has the given version. Returns
    /// `false` if the method has another version or does not exist.
    async fn put_signature(
        &self,
        tenant: &DatabaseName,
        method: &Versioned,
        signature: &Signature,
    ) -> StoreResult<bool>;

    /// Removes all methods of a tenant, if there are any.
    async fn remove_tenant(&self, tenant: &DatabaseName) -> StoreResult<()>;
}
