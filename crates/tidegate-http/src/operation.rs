//! Runs the operations that callers request. The code is the same for HTTP and for sockets.

mod access;
mod collect;
pub mod graphql;
pub mod rpc;
pub mod sql;
pub mod stream;

pub use access::{Access, Permit};
pub use collect::Pieces;
pub use sql::{BoundRequest, parse_zone};
