#![doc = include_str!("../README.md")]

pub mod backoff;
pub mod body;
mod cancel;
pub mod channel;
pub mod config;
mod connect_error;
mod host;
mod login;
mod redact_paths;
pub mod server_error;
mod startup;
pub mod stream;
pub mod tag;
mod terminator;
pub mod tls;
pub mod version;

pub use cancel::Canceller;
pub use config::{Config, ConfigError, SESSIONS, Secret, Target, TlsMode};
pub use connect_error::{
    ConnectError, ConnectFault, HostErrors, RETRY_AFTER, is_lock_table_error, is_lock_table_full,
    is_outage, is_outage_of_statement, outage,
};
pub use login::{LoggedIn, log_in};
pub use startup::StartupParameters;
pub use terminator::{Backend, BackendTerminator, TerminateOutcome};
