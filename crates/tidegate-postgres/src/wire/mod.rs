//! The frontend/backend protocol 3.0 as bytes (PostgreSQL, "Frontend/Backend Protocol").

pub(crate) mod body;
pub(crate) mod channel;
pub(crate) mod inbound;
mod paths;
pub(crate) mod rejection;
pub(crate) mod stream;
pub(crate) mod tag;
pub(crate) mod tls;
