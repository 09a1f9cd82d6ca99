#![doc = include_str!("../README.md")]

mod buffer;
pub mod error;
mod error_members;
pub mod executor;
pub mod principal;
pub mod request;
pub mod statement;
mod text_rows;
mod wal_position;

pub use buffer::Buffer;
pub use error::{DatabaseError, Error, InputError, LoginRefused, Result};
pub use error_members::{ErrorMember, ErrorMembers};
pub use executor::{
    Author, BoxFuture, Commit, Completion, ConnectionLimit, Description, Executor, Flow, Mode,
    Pipeline, PipelineError, PipelineStep, QueryOptions, RowSink, Transaction, TransactionOutcome,
};
pub use principal::{
    ClaimText, DatabaseName, InvalidMember, Login, Member, Principal, RoleName, RoleUse, SharedBy,
    has_nul,
};
pub use request::{Requests, SqlRequest};
pub use statement::{BoundStatement, Params, Statement, TypeHint};
pub use text_rows::TextRows;
pub use wal_position::{InvalidWalPosition, ReadFrom, WalPosition};
