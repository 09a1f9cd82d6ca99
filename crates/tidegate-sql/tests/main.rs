//! The tests of this crate: one binary, a module per subject.

mod parameter;
mod request;
mod statement;
