//! The crate's tests, in one binary.

mod client;
mod pool;
mod session;
mod stage;
