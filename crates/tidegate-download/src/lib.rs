#![doc = include_str!("../README.md")]

mod error;
mod fetch;
mod package;
mod unpack;

pub use error::{Error, Result};
pub use fetch::{Progress, Source};
pub use package::{DEFAULT_URL, Package};
