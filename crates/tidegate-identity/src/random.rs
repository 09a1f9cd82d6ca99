//! The port for randomness.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SecureRandom as _;

use crate::{Error, Result, Secret};

/// The port for cryptographic randomness: session ids, token ids, salts, secrets, nonces.
///
/// Signing keys and signature nonces do not use this port: `ring` accepts only the operating
/// system's source for them ([`system_source`]), because a predictable source would reveal the key.
pub trait SecureRandom: Send + Sync {
    /// Fills `bytes` with random bytes; [`Error::NoRandomness`] when the source fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

impl dyn SecureRandom + '_ {
    /// An array of random bytes.
    pub fn bytes<const N: usize>(&self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A new secret: 256 bits in base64url, which are 43 characters.
    pub fn secret(&self) -> Result<Secret> {
        Ok(Secret::new(URL_SAFE_NO_PAD.encode(self.bytes::<32>()?)))
    }
}

/// The operating system's source of random bytes.
#[derive(Clone, Debug)]
pub struct SystemRandom(ring::rand::SystemRandom);

impl SystemRandom {
    /// Creates the source. Only a binary calls this, and passes the source on.
    #[expect(
        clippy::new_without_default,
        reason = "a caller that takes the system's randomness names it"
    )]
    pub fn new() -> Self {
        Self(system_source())
    }
}

impl SecureRandom for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill(bytes).map_err(|_| Error::NoRandomness)
    }
}

/// The operating system's source, in the type that `ring` needs for signing keys.
#[expect(
    clippy::disallowed_methods,
    reason = "ring's own trait is sealed, so its source cannot arrive as an argument of our port"
)]
pub fn system_source() -> ring::rand::SystemRandom {
    ring::rand::SystemRandom::new()
}
