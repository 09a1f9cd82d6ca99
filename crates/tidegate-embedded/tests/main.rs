//! The crate's tests, which run against the PostgreSQL of this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod access;
mod child;
mod directory;
mod killed_parent;
mod lifecycle;
mod ordinary_user;
mod refusal;
mod scratch;
mod standby;
