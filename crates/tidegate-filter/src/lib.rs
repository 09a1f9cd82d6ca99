#![doc = include_str!("../README.md")]

mod error;
mod family;
mod filter;
mod json;
mod operator;
mod read;
mod write;

pub use error::{Error, Result};
pub use filter::{Comparison, Filter};
pub use json::{Elements, Json, Members};
pub use operator::Operator;
pub use write::Alias;
