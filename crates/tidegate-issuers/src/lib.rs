#![doc = include_str!("../README.md")]

mod address;
mod claim_path;
mod error;
mod fetch;
mod issuer;
mod key_cache;
mod key_set;
mod settings;
mod token;

pub use address::Network;
pub use claim_path::{ClaimPath, ClaimPathError};
pub use error::{FetchError, SettingsError, TokenError};
pub use issuer::{Issuer, VerifiedToken};
pub use settings::{IssuerSettings, SignatureAlgorithm};
pub use token::{UnverifiedToken, unverified};
