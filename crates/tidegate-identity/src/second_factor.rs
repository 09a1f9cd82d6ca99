//! The second factor of a user: TOTP, with recovery codes.

use std::fmt;

use data_encoding::BASE32_NOPAD;

use crate::{Result, Secret, SecretHash, SecureRandom};

/// A user's second factor as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondFactor {
    /// The TOTP secret (RFC 6238), encrypted; opaque to a store.
    pub sealed_secret: Vec<u8>,
    /// The number of the most recent 30-second step whose code was accepted. Codes of this step and
    /// of earlier steps are refused.
    pub used_step: u64,
    /// The number of unused recovery codes.
    pub recovery_codes: u64,
}

/// A recovery code: 80 bits, displayed as four groups of four letters and digits.
pub(crate) struct RecoveryCode(String);

const BYTES: usize = 10;

impl RecoveryCode {
    /// The number of recovery codes that a user gets.
    pub(crate) const COUNT: usize = 10;

    pub(crate) fn generate(random: &dyn SecureRandom) -> Result<Self> {
        let bytes: [u8; BYTES] = random.bytes()?;
        Ok(Self(BASE32_NOPAD.encode(&bytes)))
    }

    /// Parses user input; ignores case, dashes and spaces.
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

    /// The code as it is shown to the user, in four groups.
    pub(crate) fn display(&self) -> Secret {
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
