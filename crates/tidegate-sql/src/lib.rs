#![doc = include_str!("../README.md")]

mod buffer;
pub mod error;
pub mod executor;
pub mod principal;
pub mod request;
pub mod statement;

pub use buffer::Buffer;
pub use error::{Error, InputError, LoginRefused, Rejection, Result};
pub use executor::{
    Author, BoxFuture, Commit, Completion, Description, Executor, Flow, Mode, Pipeline,
    PipelineError, RowSink, Step, Terms, Transaction, TransactionOutcome,
};
pub use principal::{DatabaseName, Login, Principal, RoleName, Sharing};
pub use request::{Requests, SqlRequest};
pub use statement::{BoundStatement, Params, Statement, TypeHint};
