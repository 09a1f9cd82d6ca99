//! The dispatcher over a registry in memory and an executor with a script.

mod batches;
mod calls;
mod document;
mod dry_runs;
mod envelopes;
mod executor;
mod fixture;
mod property;
