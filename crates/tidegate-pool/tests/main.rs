//! The crate's tests, in one binary.

#[cfg(test)]
mod pool;
