//! What is remembered of roles whose connections could not be opened.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::connector::{Connector, Key};
use super::settings::Settings;
use super::state::{Entry, State};
use super::verdict::Verdict;

/// How often others lose an idle connection because PostgreSQL is full for one role: it may be a
/// limit of that role alone.
const EVICTION_PAUSE: Duration = Duration::from_secs(5);
/// How soon a role may be repaired again that could log in after the last time, or could not for
/// the first time.
const SHORTEST: Duration = Duration::from_secs(1);

/// What is remembered of a role whose connections could not be opened.
#[derive(Default)]
pub(super) struct Trouble {
    /// When the last repair ended, or began if it is under way.
    repaired: Option<Instant>,
    /// How many repairs the role could not log in after, since its last login that worked.
    in_vain: u32,
    /// Whose other end is gone when the last repair is over.
    repair: Option<watch::Receiver<()>>,
    /// When others lost an idle connection for it last.
    evicted: Option<Instant>,
    /// What its requests are told, and until when.
    refused: Option<(Instant, Verdict)>,
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

impl Trouble {
    fn matters(&self, now: Instant, settings: &Settings) -> bool {
        let recent = |at: Option<Instant>, time| at.is_some_and(|at| now.duration_since(at) < time);
        self.under_way().is_some()
            // Longer than the longest pause, which would begin as the shortest again.
            || recent(self.repaired, settings.repair.saturating_mul(2))
            || recent(self.evicted, EVICTION_PAUSE)
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
        let trouble = self.troubles.entry(key.clone()).or_default();
        if let Some(over) = trouble.under_way() {
            return Turn::Theirs(over.clone());
        }
        if !is_past(trouble.repaired, trouble.pause(&self.settings), now) {
            return Turn::Past;
        }
        let (under_way, over) = watch::channel(());
        (trouble.repaired, trouble.repair) = (Some(now), Some(over));
        self.counters.repairs += 1;
        Turn::Ours(under_way)
    }

    /// A repair has ended, and what became of the login behind it.
    pub(super) fn note_repair(&mut self, key: &Key, in_vain: bool, now: Instant) {
        if let Some(trouble) = self.troubles.get_mut(key) {
            trouble.repaired = trouble.repaired.map(|_| now);
            trouble.in_vain = trouble.in_vain.saturating_add(in_vain.into());
        }
    }

    /// The role can log in.
    pub(super) fn note_login(&mut self, key: &Key) {
        if let Some(trouble) = self.troubles.get_mut(key) {
            trouble.in_vain = 0;
        }
    }

    /// The role may be repaired as soon as nobody keeps it out any more: who did that may have
    /// changed its password too.
    pub(super) fn let_repair(&mut self, key: &Key) {
        if let Some(trouble) = self.troubles.get_mut(key) {
            trouble.repaired = None;
        }
    }

    /// An idle connection of any role that makes room on a full server, unless that was tried
    /// for this role just now.
    pub(super) fn evict_for(
        &mut self,
        key: &Key,
        now: Instant,
    ) -> Option<Box<Entry<K::Connection>>> {
        let before = self.troubles.get(key).and_then(|trouble| trouble.evicted);
        if !is_past(before, EVICTION_PAUSE, now) {
            return None;
        }
        let entry = self.evict(None)?;
        self.troubles.entry(key.clone()).or_default().evicted = Some(now);
        Some(entry)
    }

    /// Until `until` the role's requests that need a new connection are told this.
    pub(super) fn remember_refusal(&mut self, key: &Key, until: Instant, verdict: Verdict) {
        let trouble = self.troubles.entry(key.clone()).or_default();
        trouble.refused = Some((until, verdict));
    }

    /// What the role's requests are told now.
    pub(super) fn refusal(&self, key: &Key, now: Instant) -> Option<&Verdict> {
        let (until, verdict) = self.troubles.get(key)?.refused.as_ref()?;
        (now < *until).then_some(verdict)
    }

    /// Forgets what does not matter any more.
    pub(super) fn forget_troubles(&mut self, now: Instant) {
        let settings = &self.settings;
        self.troubles
            .retain(|_, trouble| trouble.matters(now, settings));
    }
}

fn is_past(at: Option<Instant>, pause: Duration, now: Instant) -> bool {
    at.is_none_or(|at| now.duration_since(at) >= pause)
}
