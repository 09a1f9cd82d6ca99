//! Turns rows into JSON text. The text has insertion points, into which the rows of child levels
//! are merged.

mod cell;
mod compile;
mod event;
mod keys;
mod program;
mod projection;
mod rows;
mod subfields;
mod writer;

pub(crate) use compile::{Compiler, aggregate};
pub use event::{EventField, EventWriter};
pub(crate) use keys::{KeyKind, Keys, push_element};
pub(crate) use program::{Child, Expression, NONE, Program};
pub(crate) use projection::Cast;
pub(crate) use rows::{Grouping, LevelRows};
pub(crate) use writer::wrong_column_count;
