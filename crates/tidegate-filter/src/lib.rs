#![doc = include_str!("../README.md")]

mod condition;
mod error;
mod filter;
mod json;
mod matcher;
mod operator;
mod parse;
mod rebind;
mod to_sql;
mod type_class;

pub use error::{Error, Result};
pub use filter::{Comparison, Filter};
pub use json::{Json, JsonElements, JsonMembers};
pub use matcher::{
    CaseFolding, ComparableKey, KeyReader, Matcher, RequiredValues, RowValue, Truth,
};
pub use operator::Operator;
pub use parse::non_text_kind;
pub use rebind::Leaf;
pub use to_sql::Alias;
pub use type_class::{is_groupable, is_sortable};
