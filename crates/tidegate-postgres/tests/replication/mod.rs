//! The log of changes.

mod capture;
mod scene;
mod stream;
