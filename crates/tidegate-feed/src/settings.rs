//! How a feed behaves.

use std::time::Duration;

/// How a feed behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many bytes of changes each database keeps in memory for those that come back.
    pub ring_bytes: usize,
    /// How long a subscriber may be away and still go on without a gap; what the log keeps may
    /// end it earlier.
    pub window: Duration,
    /// How long subscribing may take.
    pub patience: Duration,
    /// How many databases may be asked at once what roles may read when they subscribe.
    pub questions: usize,
    /// How often rights are read again that no look has confirmed.
    pub recheck: Duration,
    /// How long subscriptions go on when their rights cannot be checked.
    pub unchecked: Duration,
    /// How often PostgreSQL is asked about what no log tells: whether tables stand as they were
    /// captured, partitions, rights, attributes of types. One statement each time.
    pub standing: Duration,
    /// How often the retention window moves on.
    pub retain: Duration,
    /// How long a database without subscribers, and a table without any, stay captured.
    pub linger: Duration,
    /// How many streams may be open at once for those that are further behind than the memory
    /// reaches.
    pub catch_up: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ring_bytes: 64 << 20,
            window: Duration::from_mins(5),
            patience: Duration::from_secs(10),
            questions: 8,
            recheck: Duration::from_secs(10),
            unchecked: Duration::from_secs(20),
            standing: Duration::from_millis(1250),
            retain: Duration::from_secs(15),
            linger: Duration::from_mins(5),
            catch_up: 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_holds_where_nothing_is_set() {
        let settings = Settings::default();
        assert_eq!(settings.window, Duration::from_mins(5));
        // From the change of a right to the end of its subscriptions, also where nobody answers.
        let longest = settings.recheck + settings.unchecked;
        assert!(longest <= Duration::from_secs(30));
    }
}
