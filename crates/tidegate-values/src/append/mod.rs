//! Writers for pieces of output that codecs and date formats share.

pub(crate) mod json;
pub(crate) mod number;
mod stack_text;

pub use self::json::string as json_string;
pub(crate) use self::stack_text::{Push, StackText};
