//! Tests of the issuer with a memory store, a manual clock and a seeded random source.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod approvals;
mod authorization_codes;
mod client_credentials;
mod client_secrets;
mod devices;
mod directory;
mod errors;
mod fixture;
mod guest;
mod keys;
mod metadata;
mod password;
mod personal_tokens;
mod random_walk;
mod rate_limit;
mod refresh;
mod requests;
mod revocation;
mod second_factor;
mod store_outage;
mod token;
