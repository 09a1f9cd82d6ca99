//! The where language: beside golden files, and beside PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod golden;
mod language;
mod refusals;
mod stage;
