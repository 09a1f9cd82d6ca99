//! Device codes and the user codes that stand for them (RFC 8628).

use std::fmt;
use std::time::Duration;

use crate::{Result, SecretHash, SecureRandom, Timestamp, UserKey, random};

/// The letters of user codes: no vowel, so that no word comes out, and none that looks like another
/// (RFC 8628, section 6.1). 20 to the power of 8 are 34.6 bits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// A device that waits for a person, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCode {
    /// The hash of the 256-bit code that the device polls with.
    pub hash: SecretHash,
    /// What the person types: 8 letters without the dash, unique among those that are kept.
    pub user_code: String,
    /// The client that asks.
    pub client_id: String,
    /// Where it is in its life.
    pub state: DeviceState,
    /// The pause that the device must make between two polls, in whole seconds.
    pub interval: Duration,
    /// Before this moment it polls too early; none before the first poll.
    pub poll_at: Option<Timestamp>,
    /// When it is good no more.
    pub expires_at: Timestamp,
}

/// Who allowed a device, and where. It is good no longer than that browser session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Who.
    pub user: UserKey,
    /// The id of the browser session in which the person was signed in.
    pub browser: SecretHash,
}

/// The life of a device code. Only the first leads to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// Nobody has decided.
    Pending,
    /// A person allowed it.
    Approved(Approval),
    /// A person denied it.
    Denied,
    /// Its tokens were given.
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

/// What a poll found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polled {
    /// The device code, with the times that follow from this poll.
    pub device: DeviceCode,
    /// Whether it came too early.
    pub early: bool,
}

impl DeviceCode {
    /// How much too early a poll may come: clocks and networks are not exact.
    pub const GRACE: Duration = Duration::from_millis(500);
    /// What is added to the interval with every poll that comes too early (section 3.5).
    pub const SLOWER: Duration = Duration::from_secs(5);

    /// The device code after a poll at `now`: the rule of
    /// [`FlowStore::poll_device_code`](crate::FlowStore::poll_device_code) as a function.
    pub fn polled(mut self, now: Timestamp) -> Polled {
        let early = self
            .poll_at
            .is_some_and(|poll_at| now.plus(Self::GRACE) < poll_at);
        if early {
            self.interval += Self::SLOWER;
        }
        self.poll_at = Some(now.plus(self.interval));
        Polled {
            device: self,
            early,
        }
    }
}

/// A user code.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct UserCode(String);

impl UserCode {
    /// A new one; every letter is as likely as another.
    pub(crate) fn generate(random: &dyn SecureRandom) -> Result<Self> {
        let mut code = String::with_capacity(LENGTH);
        while code.len() < LENGTH {
            let [byte] = random::bytes(random)?;
            // 240 is the largest multiple of 20 that a byte holds.
            if byte < 240 {
                code.push(char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
            }
        }
        Ok(Self(code))
    }

    /// Reads what a person typed: case, dashes and blanks mean nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > 64 {
            return None;
        }
        let code: String = text
            .chars()
            .filter(|c| !c.is_whitespace() && !c.is_ascii_punctuation())
            .map(|c| c.to_ascii_uppercase())
            .collect();
        let known = code.bytes().all(|byte| LETTERS.contains(&byte));
        (known && code.len() == LENGTH).then_some(Self(code))
    }

    /// The letters alone.
    pub(crate) fn letters(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    /// As people read it: `XXXX-XXXX`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, right) = self.0.split_at(LENGTH / 2);
        write!(f, "{left}-{right}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_dash_and_blanks_mean_nothing() {
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
