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

pub use definition::{Change, Definition, Limits, Patch, Texts};
pub use error::{Error, Result};
pub use memory::MemoryMethodStore;
pub use method::{Method, Record};
pub use name::{InvalidName, MethodName};
pub use registry::Registry;
pub use rights::Actor;
pub use signature::{Field, Form, NotNull, Origin, Signature};
pub use store::{MethodStore, StoreError, StoreFuture, Written};
