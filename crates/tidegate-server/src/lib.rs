#![doc = include_str!("../README.md")]

mod activity;
mod app;
mod authenticate;
mod body;
mod compress;
mod console;
mod endpoint;
mod error;
mod forwarded;
mod graphiql;
mod limits;
mod memory;
mod metrics;
mod negotiate;
#[cfg(feature = "otlp")]
mod otlp;
mod page;
mod percent;
mod request_body;
mod route;
mod serve;
mod socket;
mod stack;
mod statements;
mod trace;

pub use app::{App, AppBuilder, Probe};
pub use body::{Body, Interrupted};
pub use forwarded::Peer;
pub use graphiql::{Graphiql, GraphiqlError};
pub use limits::{Limits, Timeouts};
pub use metrics::MetricsSource;
#[cfg(feature = "otlp")]
pub use otlp::{Exporter, OtlpError};
pub use serve::{Certificate, CertificateError, Listener, serve};
pub use stack::{Origins, service};
pub use tidegate_graphql::RoleLimits;
pub use trace::{Place, Span, SpanSink};
