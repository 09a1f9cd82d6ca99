//! Tests of users with a memory store, a manual clock and a seeded random source.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fixture;
mod imported_hashes;
mod links;
mod names;
mod password;
mod second_factor;
mod users;
