#![doc = include_str!("../README.md")]

mod actor;
pub mod admin;
mod authenticator;
pub mod backoff;
pub mod config;
pub mod connection;
pub mod control;
mod dictionary;
pub mod executor;
mod multiplex;
pub mod outbox;
mod partitions;
pub mod pool;
pub mod replication;
mod role_mark;
mod role_password;
mod session;
mod suspects;
mod terminator;
mod version;
mod wire;

pub use authenticator::{Authenticators, Decision, Objection};
pub use config::{Config, ConfigError, Secret, Target, TlsMode};
pub use connection::{Condition, ConnectError, ConnectFault, Connection, StartupPins};
pub use executor::{
    Admission, Authentication, Credential, Credentials, Postgres, RoleConnector, Roles,
};
pub use outbox::{Outbox, OutboxSettings};
pub use replication::{Replication, ReplicationSettings};
pub use role_password::{role_password, scram_verifier};
pub use terminator::{Backend, Fate, Terminator};
