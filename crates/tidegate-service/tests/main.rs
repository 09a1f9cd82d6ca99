//! The crate's tests, in one binary.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod service;
