//! The port to randomness.

use ring::rand::SecureRandom as _;

use crate::{Error, Result};

/// The port to randomness that nobody can predict: session ids, token ids, salts, secrets, nonces.
///
/// Two things never come from it: signing keys and the nonces of signatures. `ring` accepts only the
/// operating system's source for them, and a predictable one would give the key away.
pub trait SecureRandom: Send + Sync {
    /// Fills `bytes`; [`Error::NoRandomness`] when the source fails.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// The operating system's source.
#[derive(Clone, Debug)]
pub struct SystemRandom(ring::rand::SystemRandom);

impl SystemRandom {
    /// The source, for a binary to hand over.
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

/// What `ring` needs to make and use signing keys.
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
