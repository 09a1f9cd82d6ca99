//! The port to where methods are kept.
//!
//! House rules for an implementation:
//!
//! - Every method takes the tenant first and sees nothing of another one.
//! - What did not happen because of the state of the store is a [`Written`], never an error.
//! - A call that writes several methods writes all or none, also beside parallel calls.
//! - Each write gives the methods that it touches a new version, one that no method of that name
//!   ever had, also not one that was removed since. [`MethodStore::put_signature`] keeps it.
//! - Every write reaches the other nodes as a notice of tenant and names (of a rename the old one),
//!   upon which they call [`Registry::forget`](crate::Registry::forget).

use std::error::Error as StdError;

use tidegate_sql::{BoxFuture, DatabaseName};

use crate::definition::Definition;
use crate::method::Record;
use crate::name::MethodName;
use crate::signature::Signature;

/// What a store's methods return.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached now; the same call may succeed later.
    #[error("the store of the methods cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// The store answered something that it should not: a defect of it or of ours.
    #[error("the store of the methods failed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}

/// What became of a write. In all cases but the first nothing was written; the names are those
/// that stood in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done.
    Done,
    /// These names are taken, by other methods or within the call.
    Taken(Vec<MethodName>),
    /// There are no methods of these names.
    Missing(Vec<MethodName>),
    /// Who asked for the write may not touch these methods.
    Refused(Vec<MethodName>),
}

/// A method to add.
#[derive(Clone, Debug)]
pub struct NewMethod {
    /// Its definition.
    pub definition: Definition,
    /// The user who defines it.
    pub creator: String,
    /// Whether that is the tenant's owner.
    pub by_owner: bool,
}

/// What a method becomes.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The definition from now on; with another name it renames.
    pub definition: Definition,
    /// Whether the cached signature still holds.
    pub keeps_signature: bool,
    /// Whether the tenant's owner wrote `q`.
    pub by_owner: bool,
}

/// What a method as it is becomes; `None` refuses the change.
pub type Revise<'a> = dyn Fn(&Record) -> Option<Revision> + Send + Sync + 'a;

/// Whether a method as it is may be removed.
pub type MayRemove<'a> = dyn Fn(&Record) -> bool + Send + Sync + 'a;

/// A method of a known version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The method's name.
    pub name: MethodName,
    /// The version that it must have.
    pub version: u64,
}

/// The port to where methods are kept. Object safe; `dyn MethodStore` is what a registry holds.
pub trait MethodStore: Send + Sync {
    /// The methods of these names that there are, in any order.
    fn get<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
    ) -> StoreFuture<'a, Vec<Record>>;

    /// All methods of the tenant by name, in the order of the names' bytes.
    fn list<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, Vec<Record>>;

    /// Adds methods, without signatures: `Done` or `Taken`.
    fn insert<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        methods: &'a [NewMethod],
    ) -> StoreFuture<'a, Written>;

    /// Changes the methods of these names, each of which stands there once: `Done`, `Missing`,
    /// `Refused` or `Taken` (a new name). Parallel calls take turns, on all nodes: between the
    /// record that `revise` is given and the write that it asks for nobody else writes the method.
    fn update<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
        revise: &'a Revise<'a>,
    ) -> StoreFuture<'a, Written>;

    /// Removes the methods of these names, each of which stands there once: `Done`, `Missing` or
    /// `Refused`. It takes turns as [`update`](Self::update) does.
    fn remove<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        names: &'a [MethodName],
        may_remove: &'a MayRemove<'a>,
    ) -> StoreFuture<'a, Written>;

    /// Keeps what a dry run inferred of a method, if its version is still the given one. Whether
    /// it is.
    fn put_signature<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        method: &'a Versioned,
        signature: &'a Signature,
    ) -> StoreFuture<'a, bool>;

    /// Removes all methods of a tenant; that there are none is no error.
    fn remove_tenant<'a>(&'a self, tenant: &'a DatabaseName) -> StoreFuture<'a, ()>;
}
