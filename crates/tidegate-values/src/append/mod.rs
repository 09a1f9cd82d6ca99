//! Pieces of output that the codecs and the date formats append to a buffer.

pub(crate) mod json;
pub(crate) mod number;
mod stack_text;

pub use self::json::string as json_string;
pub(crate) use self::stack_text::{Push, StackText};
