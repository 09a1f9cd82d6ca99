#![doc = include_str!("../README.md")]

mod cache;
pub mod definition;
pub mod error;
mod json;
mod memory;
pub mod method;
mod name;
pub mod openrpc;
pub mod registry;
pub mod rights;
pub mod signature;
pub mod store;
pub mod typescript;

pub use definition::{Definition, Limits, MemberChange, Patch, StringMap};
pub use error::{Error, Result, StoreError};
pub use memory::MemoryMethodStore;
pub use method::{Method, Record, Versioned};
pub use name::{InvalidName, MethodName};
pub use registry::Registry;
pub use rights::Caller;
pub use signature::{ColumnOrigin, NotNull, Signature, SignatureField, ValueForm};
pub use store::{MethodStore, StoreResult, WriteOutcome};
