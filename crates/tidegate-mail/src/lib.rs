#![doc = include_str!("../README.md")]

mod error;
mod smtp;

pub use error::{Error, Result};
pub use smtp::SmtpMailer;
