//! The port for randomness.

use ring::rand::SecureRandom as _;

use crate::{Error, Result};

/// The port for cryptographic randomness: session ids, token ids, salts, secrets, nonces.
///
/// Signing keys and signature nonces do not use it: `ring` accepts only the operating system's
/// source for them, because a predictable one would reveal the key.
pub trait SecureRandom: Send + Sync {
    /// Fills `bytes`; [`Error::NoRandomness`] when the source fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// The operating system's source.
#[derive(Clone, Debug)]
pub struct SystemRandom(ring::rand::SystemRandom);

impl SystemRandom {
    /// The source, for a binary to pass in.
    #[expect(
        clippy::new_without_default,
        reason = "taking the system's randomness is said aloud"
    )]
    pub fn new() -> Self {
        Self(system())
    }
}

impl SecureRandom for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.0.fill(bytes).map_err(|_| Error::NoRandomness)
    }
}

/// The source that `ring` needs for signing keys.
#[expect(
    clippy::disallowed_methods,
    reason = "ring's own trait is sealed, so its source cannot arrive as an argument of our port"
)]
pub(crate) fn system() -> ring::rand::SystemRandom {
    ring::rand::SystemRandom::new()
}

/// An array of random bytes.
pub(crate) fn bytes<const N: usize>(random: &dyn SecureRandom) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    random.fill(&mut bytes)?;
    Ok(bytes)
}
