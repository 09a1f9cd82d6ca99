//! The WebSocket (RFC 6455): one session type, two dialects of messages.

mod answer;
mod entry;
mod handshake;
mod identity;
mod message;
mod operation;
mod raw;
mod session;
mod subscribe;
mod transport;

pub(crate) use answer::ended;
pub(crate) use handshake::{Handoff, is_asked, upgrade};
pub(crate) use session::run;
pub(crate) use subscribe::{
    Refusal, Wanted, no_feed, of_graphql, resync_reason, write_field_errors,
};
