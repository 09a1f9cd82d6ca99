//! The settings of a feed.

use std::time::Duration;

/// The settings of a feed.
#[derive(Clone, Debug)]
pub struct FeedSettings {
    /// How many bytes of changes each database keeps in memory for subscriptions that resume or
    /// lag.
    pub ring_bytes: usize,
    /// How many bytes of changes all databases together keep in memory. This memory is divided
    /// equally among the databases.
    pub rings_bytes: usize,
    /// How long a subscriber may be disconnected and still resume without a gap. The change log may
    /// limit the time further.
    pub retention_window: Duration,
    /// The time limit for starting a subscription.
    pub subscribe_timeout: Duration,
    /// How many databases may be queried at the same time for the privileges of new subscriptions.
    pub privilege_queries: usize,
    /// The interval after which privileges are read again if no poll of the catalog has confirmed
    /// them.
    pub recheck_interval: Duration,
    /// How long subscriptions continue while their privileges cannot be checked.
    pub max_unchecked: Duration,
    /// The interval at which the catalog is polled for changes that the change log does not
    /// contain: changes of captures, partitions, privileges and attributes of types. Each poll is
    /// one statement.
    pub poll_interval: Duration,
    /// The interval at which the start of the retention window is moved.
    pub retention_interval: Duration,
    /// How long databases and tables stay captured after their last subscription.
    pub idle_timeout: Duration,
    /// How many subscriptions of a database may read the change log at the same time to replay.
    pub max_replays: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            ring_bytes: 64 << 20,
            rings_bytes: 1 << 30,
            retention_window: Duration::from_mins(5),
            subscribe_timeout: Duration::from_secs(10),
            privilege_queries: 8,
            recheck_interval: Duration::from_secs(10),
            max_unchecked: Duration::from_secs(20),
            poll_interval: Duration::from_millis(1250),
            retention_interval: Duration::from_secs(15),
            idle_timeout: Duration::from_mins(5),
            max_replays: 2,
        }
    }
}

impl FeedSettings {
    /// How many bytes of changes each database keeps in memory, if `databases` databases have
    /// feeds.
    pub(crate) fn ring_share(&self, databases: usize) -> usize {
        let share = self.rings_bytes / databases.max(1);
        share.min(self.ring_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_databases_share_the_memory_for_changes() {
        let settings = FeedSettings::default();
        for (databases, mebibytes) in [(0, 64), (1, 64), (16, 64), (32, 32), (256, 4)] {
            assert_eq!(
                settings.ring_share(databases),
                mebibytes << 20,
                "{databases}"
            );
        }
    }

    #[test]
    fn defaults_keep_the_documented_limits() {
        let settings = FeedSettings::default();
        assert_eq!(settings.retention_window, Duration::from_mins(5));
        // The longest time from the revocation of a privilege to the end of the affected
        // subscriptions, even if PostgreSQL does not answer.
        let longest = settings.recheck_interval + settings.max_unchecked;
        assert!(longest <= Duration::from_secs(30));
    }
}
