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
    /// These methods have another version by now.
    Changed(Vec<MethodName>),
}

/// A method to add.
#[derive(Clone, Debug)]
pub struct NewMethod {
    /// Its definition.
    pub definition: Definition,
    /// The user who defines it.
    pub creator: String,
}

/// A change of a method.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The method's name before the change.
    pub name: MethodName,
    /// The version that the change was made from.
    pub version: u64,
    /// The definition from now on; with another name it renames.
    pub definition: Definition,
    /// Whether the cached signature still holds.
    pub keeps_signature: bool,
}

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

    /// Changes methods whose versions are still the given ones: `Done`, `Missing`, `Changed` or
    /// `Taken` (a new name). Of parallel calls from one version one is `Done`.
    fn update<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        revisions: &'a [Revision],
    ) -> StoreFuture<'a, Written>;

    /// Removes methods whose versions are still the given ones: `Done`, `Missing` or `Changed`.
    fn remove<'a>(
        &'a self,
        tenant: &'a DatabaseName,
        methods: &'a [Versioned],
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
