#![doc = include_str!("../README.md")]

mod event_stream;
mod graphql_transport_ws;
mod handshake;
mod identity;
mod message;
mod operation;
mod outgoing;
mod running_operation;
mod session;
mod subscribe;
mod table_subscription;

pub use event_stream::event_stream;
pub use handshake::{AcceptedSocket, Handoff, is_handshake, upgrade};
pub use session::run;
