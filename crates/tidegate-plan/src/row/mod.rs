//! Rows in, JSON text out: what a level's rows look like and where its children go.

mod cell;
mod compile;
mod event;
mod keys;
mod offset;
mod parts;
mod program;
mod rows;
mod shown;
mod writer;

pub(crate) use compile::{Compiler, aggregate};
pub use event::{EventField, EventWriter};
pub(crate) use keys::{KeyKind, Keys, push_element};
pub(crate) use offset::NONE;
pub(crate) use program::{Child, Expression, Program};
pub(crate) use rows::{Grouping, Rows};
pub(crate) use shown::{Cast, base};
pub(crate) use writer::miscounted;
