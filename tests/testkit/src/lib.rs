//! Code that the tests of several crates share: deadlines, golden files and random numbers. The
//! feature `database` adds databases of a temporary PostgreSQL, `service` adds the connections of
//! the service, `roles` adds login roles and an executor, `rows` adds statements and a sink that
//! collects rows, and `identity` adds what tests of users need.
//!
//! All functions panic when they fail, as a test does.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "database")]
mod database;
mod deadline;
mod golden;
#[cfg(feature = "identity")]
mod identity;
mod left_out;
mod random;
#[cfg(feature = "roles")]
mod roles;
#[cfg(feature = "rows")]
mod rows;
#[cfg(feature = "service")]
mod service;
#[cfg(feature = "rows")]
mod sql;

#[cfg(feature = "database")]
pub use database::{
    caught_up, connect, connect_as, database, database_on, oid, running, text, wait_for_running,
};
pub use deadline::{DEADLINE, eventually, soon};
pub use golden::assert_golden;
#[cfg(feature = "identity")]
pub use identity::{CHEAP, SeededRandom};
pub use left_out::left_out;
pub use random::Random;
#[cfg(feature = "roles")]
pub use roles::{Passwords, claims_key, create_role, executor, executor_with, password};
#[cfg(feature = "rows")]
pub use rows::{CollectedRows, Rows};
#[cfg(feature = "service")]
pub use service::{config, service_connections};
#[cfg(all(feature = "roles", feature = "rows"))]
pub use sql::HasUserExecutor;
#[cfg(feature = "rows")]
pub use sql::Sql;
