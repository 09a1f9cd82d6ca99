#![doc = include_str!("../README.md")]

mod batch;
mod batch_response;
mod bind;
mod call;
mod context;
mod dispatcher;
mod document;
mod dry;
mod error;
mod id;
mod output;
mod payload;
mod reply;
mod result;
mod run;

pub use bind::BoundCall;
pub use call::Call;
pub use context::{Context, DispatchOutcome};
pub use dispatcher::Dispatcher;
pub use error::Error;
pub use id::Id;
pub use output::{Output, OutputBuffer};
pub use payload::{Limits, Payload};
pub use reply::Reply;
