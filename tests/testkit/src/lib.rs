//! Code that the tests of several crates share: deadlines, golden files and random numbers. The
//! feature `database` adds databases of a temporary PostgreSQL, `roles` adds login roles and an
//! executor, and `rows` adds a sink that collects rows.
//!
//! All functions panic when they fail, as a test does.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "database")]
mod database;
mod deadline;
mod golden;
mod left_out;
mod random;
#[cfg(feature = "roles")]
mod roles;
#[cfg(feature = "rows")]
mod rows;

#[cfg(feature = "database")]
pub use database::{caught_up, connect, database, database_on, running, text, wait_for_running};
pub use deadline::{DEADLINE, eventually, soon};
pub use golden::assert_golden;
pub use left_out::left_out;
pub use random::Random;
#[cfg(feature = "roles")]
pub use roles::{Passwords, claims_key, create_role, executor, executor_with, password};
#[cfg(feature = "rows")]
pub use rows::{CollectedRows, Rows};
