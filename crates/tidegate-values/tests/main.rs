//! The tests of this crate: one binary, a module for each subject.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![expect(clippy::too_many_lines, reason = "a table of cases is read as a table")]

mod accepted;
mod codec;
mod datetime;
mod differential;
mod output;
mod output_formats;
mod parameter;
mod rows;
