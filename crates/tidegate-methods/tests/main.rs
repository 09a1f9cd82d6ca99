//! Definitions in, interfaces out; the registry before its store; signatures beside a real
//! PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod authors;
mod catalog;
mod definitions;
mod fixture;
mod names;
mod objects;
mod openrpc;
mod patches;
mod registry;
mod signatures;
mod typescript;
