//! Device codes and user codes (RFC 8628).

use std::fmt;
use std::time::Duration;

use crate::{Result, Scopes};
use tidegate_identity::{SecretHash, SecureRandom, Timestamp, UserKey};

/// The alphabet of user codes: no vowels, so that no words appear, and no characters that look
/// alike (RFC 8628, section 6.1). A code of 8 characters has 20^8 values, which is 34.6 bits.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// A device code as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// The hash of the 256-bit code that the device polls with.
    pub hash: SecretHash,
    /// The code that the person enters: 8 characters without the dash, unique among the stored
    /// device codes.
    pub user_code: String,
    /// The client that the device runs.
    pub client_id: String,
    /// The scopes that the device requested.
    pub scopes: Scopes,
    /// The state of the code: pending, approved, denied, or redeemed.
    pub state: DeviceState,
    /// The minimum time between two polls, in whole seconds.
    pub interval: Duration,
    /// Polls before this time are too early; `None` before the first poll.
    pub poll_at: Option<Timestamp>,
    /// When both codes expire.
    pub expires_at: Timestamp,
}

/// The user who approved a device, and the browser session of the approval. The approval is void
/// when this browser session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The user who approved the device.
    pub user: UserKey,
    /// The id of the user's browser session.
    pub browser: SecretHash,
}

/// The states of a device code. `Pending` can change to `Approved` or `Denied`, and `Approved` to
/// `Consumed`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// No user has decided yet.
    Pending,
    /// Approved by a user.
    Approved(Approval),
    /// Denied by a user.
    Denied,
    /// The tokens were issued.
    Consumed,
}

impl DeviceState {
    /// The name in a store: `pending`, `approved`, `denied` or `consumed`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved(_) => "approved",
            Self::Denied => "denied",
            Self::Consumed => "consumed",
        }
    }
}

/// The result of a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePoll {
    /// The device code, with `interval` and `poll_at` as updated by this poll.
    pub device: DeviceCode,
    /// Whether the poll was too early.
    pub early: bool,
}

impl DeviceCode {
    /// A poll that comes at most this long before `poll_at` does not count as too early, because
    /// clocks and networks are not exact.
    pub const GRACE: Duration = Duration::from_millis(500);
    /// The time that is added to the interval by each poll that is too early (RFC 8628, section
    /// 3.5).
    pub const SLOWER: Duration = Duration::from_secs(5);

    /// The device code after a poll at `now`. Every store must compute the same result in
    /// [`IssuerStore::poll_device_code`](crate::IssuerStore::poll_device_code).
    pub fn polled(mut self, now: Timestamp) -> DevicePoll {
        let early = self
            .poll_at
            .is_some_and(|poll_at| now.plus(Self::GRACE) < poll_at);
        if early {
            self.interval += Self::SLOWER;
        }
        self.poll_at = Some(now.plus(self.interval));
        DevicePoll {
            device: self,
            early,
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserCode(String);

impl UserCode {
    /// Generates a random code; all characters are equally likely.
    pub(crate) fn generate(random: &dyn SecureRandom) -> Result<Self> {
        let mut code = String::with_capacity(LENGTH);
        while code.len() < LENGTH {
            let [byte] = random.bytes()?;
            // Bytes from 240 on are skipped. 240 is a multiple of 20, so each character is equally
            // likely.
            if byte < 240 {
                code.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
            }
        }
        Ok(Self(code))
    }

    /// Parses user input; ignores case, dashes and spaces.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > 64 {
            return None;
        }
        let code: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_ascii_punctuation())
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let known = code.bytes().all(|byte| ALPHABET.contains(&byte));
        (known && code.len() == LENGTH).then_some(Self(code))
    }

    /// The code without the dash.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    /// The code with a dash: `XXXX-XXXX`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = self.0.split_at(LENGTH / 2);
        write!(f, "{left}-{right}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_dashes_and_spaces_are_ignored() {
        for text in ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "b-c-d-f-g-h-j-k"] {
            assert_eq!(UserCode::parse(text).unwrap().to_string(), "BCDF-GHJK");
        }
        for text in [
            "",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "ABCD-EFGH",
            "BCDF-GHJ0",
            "<script>",
        ] {
            assert!(UserCode::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_early_poll_makes_the_interval_longer() {
        let at = Timestamp::from_millis;
        let fresh = DeviceCode {
            hash: SecretHash::from_bytes([1; 32]),
            user_code: "BCDFGHJK".to_owned(),
            client_id: "app".to_owned(),
            scopes: Scopes::UNRESTRICTED,
            state: DeviceState::Pending,
            interval: Duration::from_secs(5),
            poll_at: None,
            expires_at: at(1_800_000),
        };
        let first = fresh.polled(at(0));
        assert!(!first.early, "never for the first poll");
        let grace = first.device.polled(at(4_500));
        assert!(!grace.early, "half a second is forgiven");
        let early = grace.device.polled(at(8_999));
        assert!(early.early);
        assert_eq!(early.device.interval, Duration::from_secs(10));
        let early = early.device.polled(at(18_498));
        assert!(early.early);
        let late = early.device.polled(at(33_000));
        assert!(!late.early);
        assert_eq!(late.device.interval, Duration::from_secs(15), "it stays");
    }
}
