#![doc = include_str!("../README.md")]

mod error;
mod identity;
mod mail;

pub use error::{Error, Result};
pub use identity::{ProviderKind, ProviderSettings, Providers};
pub use mail::SmtpMail;
