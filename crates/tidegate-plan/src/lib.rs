//! Table operations.

pub mod operation;
