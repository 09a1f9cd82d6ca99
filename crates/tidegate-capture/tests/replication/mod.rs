//! The change log by logical decoding.

mod capture;
pub(crate) mod fixture;
mod removal;
mod stream;
