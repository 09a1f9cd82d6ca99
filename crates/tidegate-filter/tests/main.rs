//! Tests of the where language, with golden files and with PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod condition;
mod constants;
mod events;
mod fixture;
mod golden;
mod injection;
mod language;
mod matcher;
mod orders;
mod properties;
mod refusals;
mod words;
