//! Tests of tokens of external issuers, with keys from a server on this machine.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod claim_paths;
mod fixture;
mod keys;
mod settings;
mod tokens;
mod vendors;
