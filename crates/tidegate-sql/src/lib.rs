#![doc = include_str!("../README.md")]

pub mod codec;
pub mod column;
pub mod datetime;
pub mod error;
pub mod executor;
pub mod json;
pub mod log;
pub mod output;
pub mod parameter;
pub mod principal;
pub mod request;
pub mod statement;
mod type_property;

pub use column::{Column, RawRow, WireFormat};
pub use error::{Error, InputError, LoginRefused, Rejection, Result};
pub use executor::{
    Author, BoxFuture, Commit, Completion, Description, Executor, Flow, Mode, Pipeline,
    PipelineError, RowSink, Step, Terms, Transaction, TransactionOutcome,
};
pub use output::{OutputFormat, OutputOptions, RowWriter};
pub use postgres_types::{Field as TypeField, Kind as TypeKind, Type};
pub use principal::{DatabaseName, Login, Principal, RoleName, Sharing};
pub use request::{Requests, SqlRequest};
pub use statement::{BoundStatement, Parameter, Params, Statement, TypeHint};
pub use type_property::{array_delimiter, is_hstore, is_spatial};
