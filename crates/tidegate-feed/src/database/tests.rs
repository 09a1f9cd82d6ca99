//! Tests the state of a feed when a standby is promoted.

use tidegate_changelog::{Lineage, LogIdentity, LogPosition};

use crate::database::fixture::database_feed;
use crate::event::cursor::{Cursor, EventPosition};

#[test]
fn the_log_of_a_promoted_server_continues_what_was_dispatched_before_the_switch() {
    let first = LogIdentity(1);
    let mut next = Lineage::new(LogIdentity(2));
    next.ancestors = vec![(first, LogPosition(100))];
    for (reached, continues) in [(100, true), (101, false)] {
        let feed = database_feed();
        feed.stream_opened(&Lineage::new(first), LogPosition(10), false);
        feed.advance(LogPosition(reached));
        feed.stream_opened(&next, LogPosition(100), true);
        assert_eq!(feed.hub.log_identity(), LogIdentity(2));
        // The position is reset if the other log does not continue the first one.
        let kept = feed.stream.reached() == LogPosition(reached);
        assert_eq!(kept, continues, "{reached}");
    }
}

#[test]
fn a_cursor_of_a_change_that_the_new_primary_lacks_is_unknown() {
    let first = LogIdentity(1);
    let mut lineage = Lineage::new(LogIdentity(2));
    lineage.ancestors = vec![(first, LogPosition(100))];
    let feed = database_feed();
    feed.stream_opened(&lineage, LogPosition(100), false);
    for (commit, index, known) in [(99, 7, true), (100, 0, true), (100, 1, false)] {
        let commit = LogPosition(commit);
        let cursor = Cursor::new(first, EventPosition { commit, index });
        assert_eq!(feed.hub.is_known(cursor), known, "{commit} {index}");
    }
}
