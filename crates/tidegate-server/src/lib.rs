#![doc = include_str!("../README.md")]

mod compress;
mod endpoint;
#[cfg(feature = "otlp")]
mod otlp;
mod route;
mod serve;
mod stack;

pub use endpoint::openapi;
#[cfg(feature = "otlp")]
pub use otlp::{Exporter, OtlpError};
pub use serve::{Certificate, CertificateError, Listener, serve};
pub use stack::service;
pub use tidegate_graphql::RoleLimits;
pub use tidegate_http::app::{App, AppBuilder, Origins, Probe, ReplicaReads};
pub use tidegate_http::body::{Body, BodyAborted};
pub use tidegate_http::forwarded::Peer;
pub use tidegate_http::limits::{Limits, Timeouts};
pub use tidegate_http::metrics::{MetricsSource, text_format};
pub use tidegate_http::trace::{Span, SpanContext, SpanSink};
pub use tidegate_http::{Graphiql, GraphiqlError};
