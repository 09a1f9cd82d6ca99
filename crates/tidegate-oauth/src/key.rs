//! Signing keys and the master key that seals them.

mod master;
mod record;
mod ring;
mod rotation;
mod signing;

pub use master::MasterKey;
pub use record::{KeyState, SigningKeyRecord};

pub(crate) use ring::KeyRing;
pub(crate) use rotation::{KeyGenerator, load, remove_retired, rotate};
pub(crate) use signing::SigningKey;
