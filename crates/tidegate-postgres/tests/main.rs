//! The crate's tests, in one binary.

mod admin;
mod client;
mod pool;
mod session;
mod stage;
