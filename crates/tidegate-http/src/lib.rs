#![doc = include_str!("../README.md")]

/// Implements `Debug` with the type's name only, because the fields may contain values of callers.
macro_rules! opaque_debug {
    ($type:ident) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    };
}

pub mod activity;
pub mod app;
pub mod authenticate;
pub mod base_path;
pub mod body;
pub mod call;
pub mod console;
pub mod docs;
pub mod error;
pub mod etag;
mod external;
pub mod forwarded;
mod graphiql;
pub mod limits;
pub mod memory;
pub mod metrics;
pub mod negotiate;
pub mod operation;
pub mod percent;
pub mod replica_reads;
pub mod report;
pub mod request_body;
mod statement_cache;
pub mod trace;

pub use app::{App, AppBuilder};
pub use error::ApiError;
pub use graphiql::{Graphiql, GraphiqlError};
