//! Functions that append text, numbers and JSON to a buffer. Codecs and date formats share them.

pub(crate) mod json;
pub(crate) mod number;
mod stack_text;

pub use self::json::{escape as json_escape, string as json_string};
pub(crate) use self::stack_text::{Push, StackText};
