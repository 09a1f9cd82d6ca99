//! Time-based one-time passwords (RFC 6238) with SHA-1, 30 s and 6 digits, which all authenticator
//! apps support.

use ring::hmac;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::Timestamp;

const PERIOD: i64 = 30;
const DIGITS: u32 = 6;
/// The length of a TOTP secret: 160 bits, as RFC 4226 (section 4) recommends.
pub(crate) const SECRET_BYTES: usize = 20;

/// A secret shared with the user's authenticator app.
pub(crate) struct Totp(Zeroizing<Vec<u8>>);

impl Totp {
    pub(crate) fn new(secret: Zeroizing<Vec<u8>>) -> Self {
        Self(secret)
    }

    pub(crate) fn secret(&self) -> &[u8] {
        &self.0
    }

    /// The time step to which a code belongs: the current, previous or next step, to allow for slow
    /// typing and clock skew (RFC 6238, section 5.2). `None` for a wrong code.
    pub(crate) fn step_of(&self, code: &str, now: Timestamp) -> Option<u64> {
        let typed: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let present = u64::try_from(now.seconds().div_euclid(PERIOD)).ok()?;
        let mut found = None;
        // All three codes are compared, so that the duration does not reveal which code matched.
        for step in [present.saturating_sub(1), present + 1, present] {
            let fits: bool = self.code(step).as_bytes().ct_eq(typed.as_bytes()).into();
            if fits {
                found = Some(step);
            }
        }
        found
    }

    /// The code of a time step (RFC 4226, section 5.3).
    fn code(&self, step: u64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        let tag = hmac::sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        let offset = usize::from(tag[tag.len() - 1] & 15);
        let bytes = &tag[offset..offset + 4];
        let number = bytes.iter().fold(0, |n: u32, b| n << 8 | u32::from(*b)) & 0x7fff_ffff;
        format!(
            "{:0width$}",
            number % 10_u32.pow(DIGITS),
            width = DIGITS as usize
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 6238, appendix B. Their codes have eight digits. The last six digits are
    /// compared.
    #[test]
    fn the_examples_of_the_rfc_match() {
        let totp = Totp::new(Zeroizing::new(b"12345678901234567890".to_vec()));
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let now = Timestamp::from_seconds(seconds);
            let step = u64::try_from(seconds / PERIOD).unwrap();
            assert_eq!(totp.step_of(code, now), Some(step), "{seconds}");
            let spaced = format!(" {} {} ", &code[..3], &code[3..]);
            assert_eq!(totp.step_of(&spaced, now), Some(step));
            for late in [-30, 30] {
                assert_eq!(
                    totp.step_of(code, Timestamp::from_seconds(seconds + late)),
                    Some(step)
                );
            }
            for far in [-61, 61] {
                assert_eq!(
                    totp.step_of(code, Timestamp::from_seconds(seconds + far)),
                    None
                );
            }
        }
        for bad in ["", "28708", "2870820", "28708a"] {
            assert_eq!(totp.step_of(bad, Timestamp::from_seconds(59)), None);
        }
    }
}
