//! The crate's tests, in one binary.

mod admin;
mod cancellation;
mod client;
mod isolation;
mod pool;
mod session;
mod stage;
mod types;
