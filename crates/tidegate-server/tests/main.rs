//! The edge over ports in memory: an executor with a script, an issuer with its store in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod anonymous_sql;
mod cors;
mod documented;
mod documents;
mod edge;
mod executor;
mod fixture;
mod foreign;
mod heads;
mod http2;
mod identity;
mod letters;
mod linking;
mod links;
mod methods;
mod oauth;
mod operations;
#[cfg(feature = "otlp")]
mod otlp;
mod outside;
mod page_forms;
mod pages;
mod socket;
mod sql;
mod stream;
mod tls;
mod transport;
mod unread;
mod websocket;
