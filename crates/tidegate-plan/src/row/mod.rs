//! Rows in, JSON text out: what a level's rows look like and where its children go.

mod cell;
mod compile;
mod keys;
mod parts;
mod program;
mod rows;
mod shown;

pub(crate) use compile::{Compiler, aggregate};
pub(crate) use keys::{KeyKind, Keys};
pub(crate) use program::{Child, Expression, Join, Program};
pub(crate) use rows::{Grouping, Rows, RowsFlaw, Slot};
pub(crate) use shown::{Cast, base};
