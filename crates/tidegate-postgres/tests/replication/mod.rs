//! The log of changes.

mod capture;
mod removal;
mod scene;
mod stream;
