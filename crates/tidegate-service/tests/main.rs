//! The crate's tests, in one binary.

#[cfg(test)]
#[cfg(test)]
mod service;
