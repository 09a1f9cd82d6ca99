//! The commands and programs of the documents, run as printed against the built program.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it stands"
)]

mod blocks;
mod chapters;
mod fixture;
mod run;
mod structure;
