//! Rate limits of the issuer's endpoints. The rate limits of sign-in are in `tidegate-identity`.

use std::net::IpAddr;
use std::time::Duration;

use tidegate_identity::{AttemptKey, AttemptLimit};

/// The scope of the counters for wrong secrets. Each client has one counter for each address.
const CLIENT: &str = "client";
/// The scope of the counters for opened guest sessions. There is one counter for each address.
pub(crate) const GUEST: &str = "guest";
/// The scope of the counters for requested device codes. There is one counter for each address.
pub(crate) const DEVICE: &str = "device";
/// The scope of the counters for wrong user codes. There is one counter for each address, and one
/// for each signed-in browser.
pub(crate) const USER_CODE: &str = "user_code";

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The rate limits of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// The limit on wrong secrets for one client from one address.
    pub client: AttemptLimit,
    /// The limit on guest sessions that are opened from one address.
    pub guest: AttemptLimit,
    /// The number of guest sessions that are kept for a tenant even if they are idle. The most
    /// recently refreshed sessions are kept. Any other guest session of the tenant is deleted after
    /// a day without a refresh.
    pub guest_sessions: u32,
    /// The limit on device codes that are requested from one address.
    pub device: AttemptLimit,
    /// The limit on wrong user codes from one address.
    pub user_code: AttemptLimit,
    /// The limit on wrong user codes from one signed-in browser.
    pub user_codes_per_browser: AttemptLimit,
}

impl Default for RateLimits {
    /// Per address: 20 wrong secrets of one client and 10 wrong user codes a minute; 1,000 guest
    /// sessions and 1,000 device codes an hour.
    ///
    /// Per signed-in browser: 5 wrong user codes in 15 minutes, then growing waits of 30 seconds to
    /// 15 minutes.
    ///
    /// Per tenant: 100,000 guest sessions.
    fn default() -> Self {
        Self {
            client: AttemptLimit::steady(20, MINUTE),
            guest: AttemptLimit::steady(1_000, HOUR),
            guest_sessions: 100_000,
            device: AttemptLimit::steady(1_000, HOUR),
            user_code: AttemptLimit::steady(10, MINUTE),
            user_codes_per_browser: AttemptLimit::growing(5),
        }
    }
}

/// The counter of wrong secrets that are sent for a client from one address. Requests whose address
/// is not known share one counter of the client.
pub(crate) fn client(id: &str, from: Option<IpAddr>) -> AttemptKey {
    let from = from.map(|address| AttemptKey::of_address(CLIENT, address).subject);
    AttemptKey::of_text(CLIENT, &format!("{id} {}", from.unwrap_or_default()))
}
