//! Downloads from a registry on this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod download;
mod registry;
