//! Tests of the bus.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod batches;
mod chain;
mod schedules;
