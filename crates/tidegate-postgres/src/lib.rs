#![doc = include_str!("../README.md")]

mod authenticator;
mod claims_key;
pub mod connection;
mod connector;
pub mod executor;
mod metadata;
mod multiplex;
mod purity;
pub mod replicas;
mod role_password;
mod session;
mod statement;

pub use authenticator::{Authenticators, Decision, Objection};
pub use claims_key::{CLAIMS_GENERATION, CLAIMS_REFUSED, ClaimsKey, SET_CLAIMS, claims_head};
pub use connection::{Connection, ConnectionState};
pub use connector::{Admission, Credential, Credentials, LOGIN_STATE, RoleConnector};
pub use executor::{Authentication, Postgres, UserExecutor};
pub use replicas::{PrimaryDecisions, ReplicaStatus, Replicas, ReplicatedExecutor};
pub use role_password::{role_password, scram_verifier, verifies};
