#![doc = include_str!("../README.md")]

mod error;
mod limits;
pub mod operation;
mod outcome;
mod plan;
mod row;
mod statement;

pub use error::{Error, Result};
pub use limits::Limits;
pub use operation::Operation;
pub use outcome::{FieldError, Path, PathSegment, PlanOutcome};
pub use plan::{ExecutionMode, Plan, Template};
pub use row::{EventField, EventWriter};
