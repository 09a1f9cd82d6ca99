//! Tests of the dispatcher, with a registry in memory and a scripted executor.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod batches;
mod calls;
mod document;
mod dry_runs;
mod envelopes;
mod executor;
mod fixture;
mod property;
mod stores;
