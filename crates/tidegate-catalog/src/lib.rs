#![doc = include_str!("../README.md")]

mod describe;
mod error;

pub use describe::{describe, describe_all};
pub use error::{Error, Result};
