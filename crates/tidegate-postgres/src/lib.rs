#![doc = include_str!("../README.md")]

pub mod config;
pub mod connection;
mod role_password;
mod terminator;
mod version;

pub use config::{Config, ConfigError, Secret, Target, TlsMode};
pub use connection::{Condition, ConnectError, ConnectFault, Connection, StartupPins};
pub use role_password::{role_password, scram_verifier};
pub use terminator::{Backend, Terminator};
