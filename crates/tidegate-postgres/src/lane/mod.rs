//! Lanes: connections that the quick reads of a session share while many of them run at once.
//!
//! A read on a connection of its own costs each of two processes a sleep, a wake and a system call
//! for either direction, and that is most of what a read by key costs. On a lane the messages of
//! all reads that are due travel in one write, and PostgreSQL answers one after the other (wire
//! protocol, "Pipelining"): each read keeps its own `Sync`, so its own transaction.
//!
//! A lane gives the rows of a read or nothing. What it gives nothing for, because of an error, a
//! lock, a result that is large, runs on a connection of its own, which also finds out what is
//! wrong. So only reads may use a lane that nobody notices when they run twice: those that leave
//! nothing in the session and lead to no code of the database's own.

mod answer;
mod crowd;
mod driver;
mod job;
mod open;
pub(crate) mod pace;

pub(crate) use answer::Answer;
pub(crate) use crowd::{Crowds, Visit};
