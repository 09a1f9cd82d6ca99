//! The tests of this crate: one binary, a module per subject.

mod accepted;
mod codec;
mod datetime;
mod differential;
mod output;
mod parameter;
mod request;
mod rows;
mod statement;
