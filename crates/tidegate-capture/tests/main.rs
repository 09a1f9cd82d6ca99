//! The crate's tests, in one binary.

#[cfg(test)]
mod outbox;
#[cfg(test)]
mod replication;
