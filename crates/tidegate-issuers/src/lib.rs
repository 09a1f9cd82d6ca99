#![doc = include_str!("../README.md")]

mod address;
mod claim_path;
mod directory;
mod error;
mod fetch;
mod issuer;
mod key_cache;
mod key_set;
mod record;
mod registry;
mod settings;
mod token;

pub use address::Network;
pub use claim_path::{ClaimPath, ClaimPathError};
pub use directory::{DirectoryError, IssuerChange, IssuerDirectory};
pub use error::{FetchError, SettingsError, TokenError};
pub use fetch::DocumentClient;
pub use issuer::{Issuer, VerifiedToken};
pub use record::{ExternalIssuerStore, GroupLogins, IssuerRecord, NamedRole};
pub use registry::{IssuerRegistry, SelectionError, TenantIssuer};
pub use settings::{IssuerSettings, SignatureAlgorithm};
pub use token::{UnverifiedToken, unverified};
