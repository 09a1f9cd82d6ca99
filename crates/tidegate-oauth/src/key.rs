//! Signing keys and the master key that seals them.

mod master;
mod record;
mod ring;
mod signing;

pub use master::MasterKey;
pub use record::{KeyState, SigningKeyRecord};

pub(crate) use ring::KeyRing;
pub(crate) use signing::SigningKey;
