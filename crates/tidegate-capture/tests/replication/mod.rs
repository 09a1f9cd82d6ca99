//! The change log by logical decoding.

mod capture;
mod failover;
pub(crate) mod fixture;
mod reader;
mod removal;
mod stream;
