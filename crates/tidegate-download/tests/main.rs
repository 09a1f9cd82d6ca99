//! Tests downloads from a server on this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod archive;
mod download;
mod server;
