#![doc = include_str!("../README.md")]

mod condition;
mod error;
mod family;
mod filter;
mod json;
mod matcher;
mod operator;
mod read;
mod rebind;
mod write;

pub use error::{Error, Result};
pub use family::{has_groups, has_order};
pub use filter::{Comparison, Filter};
pub use json::{Elements, Json, Members};
pub use matcher::{Image, Key, KeyReader, Letters, Matcher, Pin, Verdict};
pub use operator::Operator;
pub use read::no_text;
pub use rebind::Leaf;
pub use write::Alias;
