#![doc = include_str!("../README.md")]

mod api;
mod apis;
mod cache;
mod coerce;
mod collect;
mod definition;
mod document;
mod error;
mod execute;
mod introspection;
mod kind;
mod limits;
mod lower;
mod request;
mod response;
mod sdl;
mod subscription;
mod templates;
mod text;
mod unwritten;

pub use api::{Api, Prepared};
pub use apis::Apis;
pub use error::{Code, Error, ErrorSummary, Location, Step};
pub use execute::Context;
pub use limits::{Limits, RoleLimits};
pub use request::{Request, Requests, parse};
pub use response::Answer;
pub use subscription::{Change, Subscription};
pub use text::{Broken, Reader, Text, TooLong};
