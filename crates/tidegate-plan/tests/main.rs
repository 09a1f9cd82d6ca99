//! Tests of plans: their SQL, and their results in PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it stands"
)]

mod differential;
mod fixture;
mod golden;
mod keys;
mod limits;
mod names;
mod nested;
mod random_writes;
mod read_only;
mod reading;
mod values;
mod writing;

/// The tables of most tests: artists, their albums and tracks, genres of tracks, and staff who
/// report to staff.
pub(crate) const MUSIC: &str = include_str!("fixture/music.sql");
