//! Decides by change markers when definitions or roles are compared again.

use std::time::Duration;

use tidegate_catalog::load::ChangeMarker;
use tokio::time::Instant;

/// The pause after a comparison, as a multiple of the comparison's duration. The pause applies if
/// only the snapshot in the marker has changed since the comparison. Such comparisons therefore
/// take PostgreSQL at most a fiftieth of a core.
const PAUSE_FACTOR: u32 = 50;

/// The most recent comparison of the definitions of a database, or of the roles of the cluster.
#[derive(Default)]
pub(super) struct LastCheck {
    /// The marker that was read before the comparison; `None` if no comparison was made, or if it
    /// failed.
    marker: Option<ChangeMarker>,
    /// When the most recent comparison ended, and how long it took; `None` if none has ended.
    last: Option<(Instant, Duration)>,
}

impl LastCheck {
    /// Whether `marker` is the marker of the most recent comparison, which means that nothing has
    /// changed since.
    pub(super) fn is_current(&self, marker: &ChangeMarker) -> bool {
        self.marker.as_ref() == Some(marker)
    }

    /// Whether a comparison is due. None is due while the snapshot in the marker is unchanged. If
    /// the counts have changed too, the watched objects may have changed, and a comparison is due
    /// immediately. If only the snapshot has changed, a comparison is due after a pause, because
    /// PostgreSQL may report counts late. A comparison is also due immediately if there was none
    /// before, or if it failed.
    ///
    /// The pause is multiplied by `databases`, so that the comparisons of this number of databases
    /// together take no more time than [`PAUSE_FACTOR`] allows for one database.
    pub(super) fn is_due(&self, marker: &ChangeMarker, databases: u32) -> bool {
        match &self.marker {
            None => true,
            Some(before) if before.snapshot == marker.snapshot => false,
            Some(before) if before.counts != marker.counts => true,
            Some(_) => self.last.is_none_or(|(ended, took)| {
                ended.elapsed() >= took * PAUSE_FACTOR * databases.max(1)
            }),
        }
    }

    /// Records that a comparison begins, after `marker` was read.
    pub(super) fn begin(&mut self, marker: ChangeMarker) {
        self.marker = Some(marker);
    }

    /// Records the duration of a comparison that has ended.
    pub(super) fn end(&mut self, took: Duration) {
        self.last = Some((Instant::now(), took));
    }

    /// Makes the next comparison due, because the comparison that was begun has failed.
    pub(super) fn fail(&mut self) {
        self.marker = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(snapshot: &str, counts: &str) -> ChangeMarker {
        ChangeMarker {
            snapshot: snapshot.to_owned(),
            counts: counts.to_owned(),
        }
    }

    #[test]
    fn a_comparison_is_due_at_once_by_its_counts_and_late_by_the_snapshot_alone() {
        let mut check = LastCheck::default();
        assert!(check.is_due(&marker("1", "a"), 1));
        check.begin(marker("1", "a"));
        check.end(Duration::from_millis(10));
        assert!(!check.is_due(&marker("1", "a"), 1));
        // PostgreSQL reported the counts late: only they differ, and the snapshot is the same. So
        // the comparison has already seen the changes that the counts report.
        assert!(!check.is_due(&marker("1", "b"), 1));
        assert!(check.is_due(&marker("2", "b"), 1));
        assert!(!check.is_due(&marker("2", "a"), 1));
        check.last = Some((
            Instant::now() - Duration::from_millis(600),
            Duration::from_millis(10),
        ));
        assert!(check.is_due(&marker("2", "a"), 1));
        assert!(!check.is_due(&marker("2", "a"), 2));
        check.fail();
        assert!(check.is_due(&marker("1", "a"), 1));
    }
}
