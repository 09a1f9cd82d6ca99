//! The crate's tests, in one binary.

mod pool;
