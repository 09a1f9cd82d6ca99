#![doc = include_str!("../README.md")]

mod api;
mod api_cache;
mod cache;
mod chunked;
mod collect;
mod definition;
mod document;
mod error;
mod execute;
mod field_type;
mod introspection;
mod large_text;
mod limits;
mod lower;
mod request;
mod response;
mod sdl;
mod subscription;
mod templates;

pub use api::{Api, PreparedOperation};
pub use api_cache::ApiCache;
pub use definition::ChangeKind;
pub use error::{Code, Error, ErrorSummary, Location};
pub use execute::Context;
pub use limits::{Limits, RoleLimits};
pub use request::{Request, Requests, parse};
pub use response::{GraphqlResponse, ResponseReader, ResponseText, TooLong, WriterFailed};
pub use subscription::Subscription;
