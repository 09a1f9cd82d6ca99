#![doc = include_str!("../README.md")]

mod code_flow;
mod discovery;
mod error;
mod github;
mod id_token;
mod providers;
mod settings;

pub use error::{Error, Result};
pub use providers::Providers;
pub use settings::{ProviderKind, ProviderSettings};
