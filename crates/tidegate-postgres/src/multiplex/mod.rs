//! Multiplexed connections: quick reads of many requests on one connection.
//!
//! For a request on a connection of its own, the service and the backend each need a sleep, a
//! wake-up and a system call in each direction. These operations are more than half of the cost of
//! a small read in PostgreSQL. On a multiplexed connection the queued pipelines of all requests are
//! sent in one write, and PostgreSQL runs them in order (wire protocol, "Pipelining"). Each
//! pipeline starts with the switch to its caller and ends with its own `Sync`, so it has its own
//! transaction. After an error PostgreSQL skips to that `Sync`, and no other pipeline is affected.
//! The sessions are read-only by default and use the isolation level `REPEATABLE READ`, so the
//! statements of a pipeline share one snapshot without `BEGIN`.
//!
//! A multiplexed connection returns all rows of a pipeline or none. After any failure (an error, a
//! lock, a large result, a broken connection) the request runs again on a connection of its own,
//! which reports the error. Therefore only reads that may run twice are multiplexed: reads that
//! have no side effects and run no user-defined code.

mod backlog;
mod buffered_rows;
mod connection;
mod counts;
mod driver;
mod multiplexer;
mod pending;
mod send_queue;
mod slot;

pub(crate) use buffered_rows::BufferedRows;
pub(crate) use multiplexer::{InFlightGuard, Multiplexer};
pub(crate) use send_queue::Enqueued;
