//! Signing keys.

mod record;
mod ring;
mod signing;

pub use record::{KeyState, SigningKeyRecord};

pub(crate) use ring::KeyRing;
pub(crate) use signing::SigningKey;
