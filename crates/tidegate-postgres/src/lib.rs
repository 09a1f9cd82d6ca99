#![doc = include_str!("../README.md")]

mod authenticator;
pub mod connection;
mod connector;
pub mod executor;
mod metadata;
mod multiplex;
mod purity;
mod role_password;
mod session;
mod statement;

pub use authenticator::{Authenticators, Decision, Objection};
pub use connection::{Connection, ConnectionState};
pub use connector::{Admission, Credential, Credentials, LOGIN_STATE, RoleConnector};
pub use executor::{Authentication, Postgres, UserExecutor};
pub use role_password::{role_password, scram_verifier, verifies};
