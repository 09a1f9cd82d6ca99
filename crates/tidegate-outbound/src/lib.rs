#![doc = include_str!("../README.md")]

mod error;
mod mail;

pub use error::{Error, Result};
pub use mail::SmtpMail;
