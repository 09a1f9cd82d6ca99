//! Runs the operations that callers request. The code is the same for HTTP and WebSockets.

mod access;
mod bind;
mod collect;
pub mod graphql;
pub mod rpc;
pub mod sql;
pub mod stream;

pub use access::{Access, Permit};
pub use bind::{BoundRequest, parse_zone};
pub use collect::Pieces;
