//! The log of changes.

mod capture;
mod removal;
pub(crate) mod scene;
mod stream;
