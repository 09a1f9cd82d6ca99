//! Signing keys and the master key that seals them.

mod record;

pub use record::{KeyState, SigningKeyRecord};
