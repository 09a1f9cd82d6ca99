//! Multiplexed connections: quick reads of many requests travel over one connection.
//!
//! A request on a connection of its own costs both processes a sleep, a wake-up and a system call
//! in each direction, which is more than half of what a small read costs PostgreSQL. On a
//! multiplexed connection the pipelines of all requests that are due go out in one write, and
//! PostgreSQL answers them in order (wire protocol, "Pipelining"). Each pipeline begins with its own
//! role switch and ends with its own `Sync`, so it has its own transaction: an error skips to that
//! `Sync` and touches no other pipeline. The sessions read with `default_transaction_read_only` and
//! in `REPEATABLE READ`, so several statements of a pipeline share one snapshot without `BEGIN`.
//!
//! A multiplexed connection returns all rows of a pipeline or nothing. After any failure (an error,
//! a lock, a large result, a lost connection) the request runs again on a connection of its own,
//! which reports the error. So only reads may be multiplexed that may run twice: those that leave
//! nothing in the session and reach no code stored in the database.

mod answer;
mod connection;
mod driver;
mod group;
mod job;
pub(crate) mod pace;
mod queue;
mod slot;

pub(crate) use answer::Answer;
pub(crate) use group::{Entry, Multiplexer};
pub(crate) use queue::Asked;
