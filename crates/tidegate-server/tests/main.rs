//! Tests of the HTTP server with ports in memory: a scripted executor, and an issuer with a memory
//! store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod account_linking;
mod activity;
mod announced_shutdown;
mod anonymous_sql;
mod builtin_client;
mod console;
mod cors;
mod credentials;
mod docs;
mod documented;
mod documents;
mod edge;
mod email_links;
mod email_sign_in;
mod executor;
mod fixture;
mod http2;
mod identity;
mod impersonation;
mod malformed_heads;
mod methods;
mod oauth;
mod operations;
mod other_database;
#[cfg(feature = "otlp")]
mod otlp;
mod page_forms;
mod pages;
mod passkeys;
mod password_reset;
mod ports;
mod provider_sign_up;
mod sessions;
mod sign_in_link;
mod socket;
mod sql;
mod stream;
mod tls;
mod transport;
mod unread_bodies;
mod websocket;
