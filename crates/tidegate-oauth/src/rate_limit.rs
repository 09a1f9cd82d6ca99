//! Rate limits: which attempts are counted, and how many are allowed. The counters are in the store
//! and shared by all nodes.

mod counter;

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use crate::{SecretHash, UserKey};

pub use counter::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome, AttemptScope};

const MINUTE: Duration = Duration::from_mins(1);
const QUARTER: Duration = Duration::from_mins(15);
const HOUR: Duration = Duration::from_hours(1);

/// The rate limits of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Passwords tried for one account.
    pub account: AttemptLimit,
    /// Failures from one address.
    pub address: AttemptLimit,
    /// Wrong secrets for one client from one address.
    pub client: AttemptLimit,
    /// Guest sessions from one address.
    pub guest: AttemptLimit,
    /// Guest sessions kept for one tenant. Of more than that, those not refreshed within a day are
    /// deleted.
    pub guest_sessions: u32,
    /// Device codes from one address.
    pub device: AttemptLimit,
    /// Wrong user codes from one address.
    pub user_code: AttemptLimit,
    /// Wrong user codes of one signed-in browser.
    pub user_codes_per_browser: AttemptLimit,
    /// Second-factor codes tried for one user.
    pub second_factor: AttemptLimit,
    /// Accounts made from one address.
    pub sign_up: AttemptLimit,
    /// Email messages to one user.
    pub emails: AttemptLimit,
    /// Email messages requested from one address.
    pub emails_per_address: AttemptLimit,
}

impl Default for RateLimits {
    /// 10 passwords per account in 15 minutes, then growing waits of 30 seconds to 15 minutes; the
    /// same after 5 second-factor codes and after 5 wrong user codes of a signed-in browser. Per
    /// address: 30 failures, 20 wrong secrets of one client and 10 wrong user codes a minute; 1,000
    /// guest sessions, 1,000 device codes and 60 sign-ups an hour. 100,000 guest sessions per
    /// tenant. 5 messages per user and 20 per address an hour.
    fn default() -> Self {
        let steady = |count, window| AttemptLimit {
            count,
            window,
            first_delay: MINUTE,
            longest_delay: MINUTE,
            memory: Duration::ZERO,
        };
        let growing = |count| AttemptLimit {
            count,
            window: QUARTER,
            first_delay: Duration::from_secs(30),
            longest_delay: QUARTER,
            memory: QUARTER,
        };
        Self {
            account: growing(10),
            address: steady(30, MINUTE),
            client: steady(20, MINUTE),
            guest: steady(1_000, HOUR),
            guest_sessions: 100_000,
            device: steady(1_000, HOUR),
            user_code: steady(10, MINUTE),
            user_codes_per_browser: growing(5),
            second_factor: growing(5),
            sign_up: steady(60, HOUR),
            emails: steady(5, HOUR),
            emails_per_address: steady(20, HOUR),
        }
    }
}

/// The counter of an account. The name is hashed, because it may be long and need not exist.
pub(crate) fn account(key: &UserKey) -> AttemptKey {
    with_user(AttemptScope::Account, key)
}

/// The counter of a user's second factor.
pub(crate) fn second_factor(key: &UserKey) -> AttemptKey {
    with_user(AttemptScope::SecondFactor, key)
}

fn with_user(scope: AttemptScope, key: &UserKey) -> AttemptKey {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(key.database.as_bytes());
    context.update(&[0]);
    context.update(key.name.as_bytes());
    let subject = URL_SAFE_NO_PAD.encode(context.finish());
    AttemptKey { scope, subject }
}

/// The counter of messages to a user, whether the user exists or not.
pub(crate) fn emails_to(key: &UserKey) -> AttemptKey {
    with_user(AttemptScope::Email, key)
}

/// The counter of wrong secrets for a client from one address.
pub(crate) fn client(id: &str, from: Option<IpAddr>) -> AttemptKey {
    let from = from.map_or_else(String::new, network);
    of_text(AttemptScope::Client, &format!("{id} {from}"))
}

/// The counter of uses of an email link.
pub(crate) fn link(token: &str) -> AttemptKey {
    of_text(AttemptScope::Link, token)
}

/// The counter of sign-up messages to an email address, in all tenants.
pub(crate) fn recipient(email: &str) -> AttemptKey {
    of_text(AttemptScope::Email, &email.to_lowercase())
}

fn of_text(scope: AttemptScope, text: &str) -> AttemptKey {
    let subject = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
    AttemptKey { scope, subject }
}

/// A counter of an address.
pub(crate) fn address(scope: AttemptScope, address: IpAddr) -> AttemptKey {
    let subject = network(address);
    AttemptKey { scope, subject }
}

/// An IPv4 address, or the /64 of an IPv6 address, which one customer usually holds.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// The counter of a signed-in browser.
pub(crate) fn browser(scope: AttemptScope, id: SecretHash) -> AttemptKey {
    let subject = id.to_base64url();
    AttemptKey { scope, subject }
}
