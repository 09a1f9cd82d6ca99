//! Tests of the where language, with golden files and with PostgreSQL.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod condition;
mod events;
mod fixture;
mod golden;
mod injection;
mod language;
mod matcher;
mod properties;
mod refusals;
mod sortable_types;
mod unknown_operators;
mod value_parsing;
