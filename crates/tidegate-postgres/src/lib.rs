#![doc = include_str!("../README.md")]

mod authenticator;
pub mod connection;
mod dictionary;
pub mod executor;
mod multiplex;
mod role_password;
mod session;
mod suspects;

pub use authenticator::{Authenticators, Decision, Objection};
pub use connection::{Condition, Connection};
pub use executor::{
    Admission, Authentication, Credential, Credentials, LOGIN_STATE, Postgres, RoleConnector, Roles,
};
pub use role_password::{role_password, scram_verifier, verifies};
