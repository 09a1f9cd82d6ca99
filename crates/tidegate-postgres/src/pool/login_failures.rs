//! What is remembered about roles that could not log in.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::{Connector, Key};
use super::settings::Settings;
use super::state::State;

/// How soon a role may be repaired again that could log in after the last time, or could not for
/// the first time.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is remembered about a role that could not log in.
#[derive(Default)]
pub(super) struct LoginFailures {
    /// When the last repair ended, or began if it is under way.
    repaired: Option<Instant>,
    /// How many repairs the role could not log in after, since its last login that worked.
    in_vain: u32,
    /// Whose other end is gone when the last repair is over.
    repair: Option<watch::Receiver<()>>,
    /// The error of its requests, and until when.
    refused: Option<(Instant, AcquireError)>,
}

/// Whose turn it is to repair a role.
pub(super) enum Turn {
    /// Of who asks, until this is dropped.
    Ours(watch::Sender<()>),
    /// Another attempt's; it is over when the sender is gone.
    Theirs(watch::Receiver<()>),
    /// Nobody's: it has been tried, and the pause is not over.
    Past,
}

impl LoginFailures {
    fn matters(&self, now: Instant, settings: &Settings) -> bool {
        let recent = |at: Option<Instant>, time| at.is_some_and(|at| now.duration_since(at) < time);
        self.under_way().is_some()
            // Longer than the longest pause, which would begin as the shortest again.
            || recent(self.repaired, settings.repair.saturating_mul(2))
            || self.refused.as_ref().is_some_and(|(until, _)| now < *until)
    }

    fn under_way(&self) -> Option<&watch::Receiver<()>> {
        let repair = self.repair.as_ref();
        // An error is the end of it.
        repair.filter(|over| over.has_changed().is_ok())
    }

    /// How long after a repair the next may begin. Who shares the role may spoil it again at once,
    /// which must not keep all others out for long; where nothing helps, it grows.
    fn pause(&self, settings: &Settings) -> Duration {
        let doubled = 1_u32.checked_shl(self.in_vain.saturating_sub(1));
        SHORTEST
            .saturating_mul(doubled.unwrap_or(u32::MAX))
            .min(settings.repair)
    }
}

impl<K: Connector> State<K> {
    /// Whose turn it is to repair the role; a repair counts.
    pub(super) fn may_repair(&mut self, key: &Key, now: Instant) -> Turn {
        let failures = self.login_failures.entry(key.clone()).or_default();
        if let Some(over) = failures.under_way() {
            return Turn::Theirs(over.clone());
        }
        if !is_past(failures.repaired, failures.pause(&self.settings), now) {
            return Turn::Past;
        }
        let (under_way, over) = watch::channel(());
        (failures.repaired, failures.repair) = (Some(now), Some(over));
        self.counters.repairs += 1;
        Turn::Ours(under_way)
    }

    /// A repair has ended, and what became of the login behind it.
    pub(super) fn note_repair(&mut self, key: &Key, in_vain: bool, now: Instant) {
        if let Some(failures) = self.login_failures.get_mut(key) {
            failures.repaired = failures.repaired.map(|_| now);
            failures.in_vain = failures.in_vain.saturating_add(in_vain.into());
        }
    }

    /// The role has logged in.
    pub(super) fn note_login(&mut self, key: &Key, now: Instant) {
        let (held, capacity) = (self.held, self.settings.capacity);
        self.server_limit.granted(held, capacity, now);
        if let Some(failures) = self.login_failures.get_mut(key) {
            failures.in_vain = 0;
        }
    }

    /// The role may be repaired as soon as nobody keeps it out any more: who did that may have
    /// changed its password too.
    pub(super) fn let_repair(&mut self, key: &Key) {
        if let Some(failures) = self.login_failures.get_mut(key) {
            failures.repaired = None;
        }
    }

    /// Until `until` the role's requests that need a new connection fail with this error.
    pub(super) fn remember_refusal(&mut self, key: &Key, until: Instant, error: AcquireError) {
        let failures = self.login_failures.entry(key.clone()).or_default();
        failures.refused = Some((until, error));
    }

    /// The error of the role's requests, while one is remembered.
    pub(super) fn refusal(&self, key: &Key, now: Instant) -> Option<&AcquireError> {
        let (until, error) = self.login_failures.get(key)?.refused.as_ref()?;
        (now < *until).then_some(error)
    }

    /// Forgets what does not matter any more.
    pub(super) fn forget_login_failures(&mut self, now: Instant) {
        let settings = &self.settings;
        self.login_failures
            .retain(|_, failures| failures.matters(now, settings));
    }
}

fn is_past(at: Option<Instant>, pause: Duration, now: Instant) -> bool {
    at.is_none_or(|at| now.duration_since(at) >= pause)
}
