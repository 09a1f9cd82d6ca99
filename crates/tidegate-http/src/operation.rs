//! The operations of callers, which are the same over HTTP and over a WebSocket.

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
