//! Tests of definitions, interfaces, the registry with its store, and of signatures with
//! PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod authors;
mod catalog;
mod counting_store;
mod definitions;
mod fixture;
mod names;
mod objects;
mod openrpc;
mod patches;
mod registry;
mod signatures;
mod typescript;
