//! The second factor of a user: an authenticator, and codes for the day on which it is lost.

use std::fmt;

use data_encoding::BASE32_NOPAD;

use crate::{Result, Secret, SecretHash, SecureRandom, random};

/// A user's authenticator as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFactor {
    /// The shared secret (RFC 6238), sealed; opaque to a store.
    pub sealed_secret: Vec<u8>,
    /// The time step of the last code that was accepted; it and those before it are refused.
    pub used_step: u64,
    /// How many recovery codes are left.
    pub recovery_codes: u64,
}

/// A recovery code: 80 bits, shown as four groups of four letters and digits.
pub(crate) struct RecoveryCode(String);

const BYTES: usize = 10;

impl RecoveryCode {
    /// How many a user gets.
    pub(crate) const COUNT: usize = 10;

    pub(crate) fn generate(random: &dyn SecureRandom) -> Result<Self> {
        let bytes: [u8; BYTES] = random::bytes(random)?;
        Ok(Self(BASE32_NOPAD.encode(&bytes)))
    }

    /// Reads what a person typed: case, dashes and blanks mean nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > 64 {
            return None;
        }
        let code: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && *c != '-')
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let bytes = BASE32_NOPAD.decode(code.as_bytes()).ok()?;
        (bytes.len() == BYTES).then_some(Self(code))
    }

    pub(crate) fn hash(&self) -> SecretHash {
        SecretHash::of(&Secret::new(self.0.as_str()))
    }

    /// As people read it.
    pub(crate) fn shown(&self) -> Secret {
        let groups: Vec<&str> = (0..4)
            .filter_map(|n| self.0.get(4 * n..4 * n + 4))
            .collect();
        Secret::new(groups.join("-").to_lowercase())
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
