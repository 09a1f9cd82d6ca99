#![doc = include_str!("../README.md")]

mod answer;
mod batch;
mod context;
mod dispatcher;
mod document;
mod dry;
mod error;
mod id;
mod output;
mod payload;
mod prepare;
mod reply;
mod result;
mod run;
mod text;

pub use context::{Context, Outcome};
pub use dispatcher::Dispatcher;
pub use error::Error;
pub use id::Id;
pub use output::{Output, OutputBuffer};
pub use payload::{Call, Limits, Payload};
pub use prepare::Prepared;
pub use reply::Reply;
