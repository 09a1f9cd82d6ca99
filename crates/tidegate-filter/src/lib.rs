//! The where language.

mod filter;
mod json;

pub use filter::{Comparison, Filter, Operator};
pub use json::Json;
