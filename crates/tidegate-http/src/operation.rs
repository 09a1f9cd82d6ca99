//! The operations of callers, which are the same over HTTP and over a WebSocket.

mod access;
mod collect;
pub mod graphql;
mod prepare;
pub mod rpc;
pub mod sql;
pub mod stream;

pub use access::{Access, Permit};
pub use collect::Pieces;
pub use prepare::{PreparedRequest, parse_zone};
