//! The settings of a feed.

use std::time::Duration;

/// The settings of a feed.
#[derive(Clone, Debug)]
pub struct FeedSettings {
    /// The maximum bytes of one database's changes that the node keeps in memory, for subscriptions
    /// that resume or lag.
    pub ring_bytes: usize,
    /// The maximum bytes of the changes of all databases together that the node keeps in memory.
    /// Each database gets an equal part, but at most `ring_bytes`.
    pub total_ring_bytes: usize,
    /// How long a subscriber may be disconnected and still resume without a gap. The change log may
    /// allow less time.
    pub retention_window: Duration,
    /// The time limit for starting a subscription.
    pub subscribe_timeout: Duration,
    /// The maximum number of databases in which the privileges for new subscriptions are queried at
    /// the same time.
    pub privilege_queries: usize,
    /// How long privileges are used after they were read, or confirmed by a poll of the catalog.
    /// Afterwards they are read again.
    pub recheck_interval: Duration,
    /// How long subscriptions continue while their privileges cannot be checked.
    pub max_unchecked: Duration,
    /// The interval at which the catalog is polled for changes that the change log does not
    /// contain: changes of captures, partitions, privileges and attributes of types. Each poll is
    /// one statement.
    pub poll_interval: Duration,
    /// The interval at which the start of the retention window is moved forward.
    pub retention_interval: Duration,
    /// How long a table is still captured after its last subscription has ended. The feed of a
    /// database without subscriptions runs for the same time.
    pub idle_timeout: Duration,
    /// The maximum number of subscriptions of one database that read the change log at the same
    /// time in order to replay.
    pub max_replays: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            ring_bytes: 64 << 20,
            total_ring_bytes: 1 << 30,
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
    /// The maximum bytes of changes that are kept in memory for each database, if `databases`
    /// databases have feeds.
    pub(crate) fn ring_share(&self, databases: usize) -> usize {
        let share = self.total_ring_bytes / databases.max(1);
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
        // subscriptions, even if PostgreSQL does not respond.
        let longest = settings.recheck_interval + settings.max_unchecked;
        assert!(longest <= Duration::from_secs(30));
    }
}
