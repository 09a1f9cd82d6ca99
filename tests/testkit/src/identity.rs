//! Random bytes and passwords for tests of users and sign-ins.

use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_identity::{PasswordCost, Result, SecureRandom};

use crate::random::{STEP, mix};

/// The cheapest parameters that Argon2id allows.
pub const CHEAP: PasswordCost = PasswordCost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

/// A `SplitMix64` generator with a fixed seed, which yields the same bytes in every run.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// A generator whose bytes depend only on the seed.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP))
    }

    /// A number below `end`.
    pub fn below(&self, end: u64) -> u64 {
        self.next() % end
    }
}

impl SecureRandom for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
