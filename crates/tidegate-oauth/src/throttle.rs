//! Which attempts are counted, and how many are allowed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use crate::{
    AttemptKey, AttemptLimit, AttemptScope, Clock, Counted, Error, Result, SecretHash, Store,
    UserKey,
};

const MINUTE: Duration = Duration::from_mins(1);
const QUARTER: Duration = Duration::from_mins(15);
const HOUR: Duration = Duration::from_hours(1);

/// How many attempts are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Passwords for one account.
    pub account: AttemptLimit,
    /// Failures from one address.
    pub address: AttemptLimit,
    /// Wrong secrets for one client from one address.
    pub client: AttemptLimit,
    /// Guest sessions from one address.
    pub guest: AttemptLimit,
    /// Guest sessions of one tenant that stay however long nobody refreshes them; of those beyond
    /// only what was refreshed within a day does.
    pub guest_sessions: u32,
    /// Device codes from one address.
    pub device: AttemptLimit,
    /// Wrong user codes from one address.
    pub user_code: AttemptLimit,
    /// Wrong user codes of one signed-in browser.
    pub user_code_of_browser: AttemptLimit,
    /// Codes for the second factor of one user.
    pub second_factor: AttemptLimit,
    /// Accounts made from one address.
    pub sign_up: AttemptLimit,
    /// Letters to one user.
    pub letters: AttemptLimit,
    /// Letters asked for from one address.
    pub letters_of_address: AttemptLimit,
}

impl Default for Limits {
    /// 10 passwords an account in 15 minutes, then waits that grow from half a minute to a quarter
    /// of an hour, the same after 5 codes of a second factor and after 5 wrong user codes of one
    /// signed-in browser; 30 failures an address, 20 wrong
    /// secrets of a client from one address and 10 wrong user codes an address a minute; 1,000 guest sessions and as many device
    /// codes an address an hour and 100,000 guest sessions a tenant, so that nobody fills their
    /// tables; 60 accounts an address an hour.
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
            user_code_of_browser: growing(5),
            second_factor: growing(5),
            sign_up: steady(60, HOUR),
            letters: steady(5, HOUR),
            letters_of_address: steady(20, HOUR),
        }
    }
}

/// The counter of an account. The name is hashed: it may be long and need not exist.
pub(crate) fn account(key: &UserKey) -> AttemptKey {
    of_user(AttemptScope::Account, key)
}

/// The counter of a user's second factor.
pub(crate) fn second_factor(key: &UserKey) -> AttemptKey {
    of_user(AttemptScope::SecondFactor, key)
}

fn of_user(scope: AttemptScope, key: &UserKey) -> AttemptKey {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(key.database.as_bytes());
    context.update(&[0]);
    context.update(key.name.as_bytes());
    let subject = URL_SAFE_NO_PAD.encode(context.finish());
    AttemptKey { scope, subject }
}

/// The counter of letters to a user, whether it exists or not.
pub(crate) fn letters(key: &UserKey) -> AttemptKey {
    of_user(AttemptScope::Letter, key)
}

/// The counter of wrong secrets for a client that come from one address.
pub(crate) fn client(id: &str, from: Option<IpAddr>) -> AttemptKey {
    let from = from.map_or_else(String::new, network);
    of_text(AttemptScope::Client, &format!("{id} {from}"))
}

/// The counter of the uses of a letter's link.
pub(crate) fn link(token: &str) -> AttemptKey {
    of_text(AttemptScope::Link, token)
}

/// The counter of sign-up letters to an address of e-mail, whatever the tenant.
pub(crate) fn recipient(email: &str) -> AttemptKey {
    of_text(AttemptScope::Letter, &email.to_lowercase())
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

/// An IPv4 address, or the /64 of an IPv6 address, which is what one customer has.
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

/// The attempts on this node that are counted and not yet decided, by counter.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<AttemptKey, u32>>);

/// How long somebody waits who is refused while others are in flight: they may turn out right and
/// be given back in a moment.
const MOMENT: Duration = Duration::from_secs(1);

impl InFlight {
    fn counts(&self) -> MutexGuard<'_, HashMap<AttemptKey, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, key: &AttemptKey) {
        *self.counts().entry(key.clone()).or_default() += 1;
    }

    fn leave(&self, key: &AttemptKey) {
        let mut counts = self.counts();
        match counts.get_mut(key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(key)),
        }
    }

    fn has(&self, key: &AttemptKey) -> bool {
        self.counts().contains_key(key)
    }
}

/// Attempts that are counted and not yet decided. Dropping them leaves them counted: an attempt
/// that its caller abandoned was an attempt.
pub(crate) struct Attempts<'a> {
    store: &'a dyn Store,
    clock: &'a dyn Clock,
    in_flight: &'a InFlight,
    counted: Vec<AttemptKey>,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(store: &'a dyn Store, clock: &'a dyn Clock, in_flight: &'a InFlight) -> Self {
        Self {
            store,
            clock,
            in_flight,
            counted: Vec::new(),
        }
    }

    /// Counts one; [`Error::TooManyAttempts`] when it must not go on.
    pub(crate) async fn count(&mut self, key: AttemptKey, limit: &AttemptLimit) -> Result<()> {
        let now = self.clock.now();
        match self.store.count_attempt(&key, limit, now).await? {
            Counted::Allowed => {
                self.in_flight.enter(&key);
                self.counted.push(key);
                Ok(())
            }
            Counted::Refused { until } => {
                let wait = until.since(now);
                let soon = self.in_flight.has(&key);
                Err(Error::TooManyAttempts {
                    retry_after: if soon { wait.min(MOMENT) } else { wait },
                })
            }
        }
    }

    /// Gives all of them back: they turned out right, or nothing was tried.
    pub(crate) async fn give_back(self) -> Result<()> {
        for key in &self.counted {
            self.store.give_attempt_back(key).await?;
        }
        Ok(())
    }
}

impl Drop for Attempts<'_> {
    fn drop(&mut self) {
        for key in &self.counted {
            self.in_flight.leave(key);
        }
    }
}
