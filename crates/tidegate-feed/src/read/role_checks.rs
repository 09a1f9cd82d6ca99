//! Decides when the roles of the subscriptions to a changed table are checked.

use std::collections::HashMap;

use tidegate_changelog::LogPosition;

/// The tables for which the roles of subscriptions were checked.
///
/// All transactions of a batch had committed before the batch arrived, so one check for each table
/// and batch is enough. This includes a transaction that continues in the next batch: the rest of
/// it needs no further check. Later transactions of the next batch need one, because a role may
/// have changed before they committed.
#[derive(Default)]
pub(super) struct RoleChecks {
    tables: HashMap<u32, RoleCheck>,
}

struct RoleCheck {
    /// The position of the commit of the newest transaction that the check covers.
    commit: LogPosition,
    /// Whether the check was made after the current batch had arrived.
    is_current: bool,
}

impl RoleChecks {
    /// Called when a batch has arrived. `open` is the commit of the transaction that the batch
    /// continues.
    pub(super) fn begin_batch(&mut self, open: Option<LogPosition>) {
        self.tables.retain(|_, check| {
            check.is_current = false;
            Some(check.commit) == open
        });
    }

    /// Whether the roles must be checked before a change of the table `relation` is dispatched.
    /// `commit` is the commit of the change's transaction. Assumes that the caller then checks
    /// them.
    pub(super) fn need_check(&mut self, relation: u32, commit: LogPosition) -> bool {
        let check = self.tables.get(&relation);
        let is_current = check.is_some_and(|it| it.is_current);
        let is_covered = is_current || check.is_some_and(|it| it.commit == commit);
        let is_current = is_current || !is_covered;
        self.tables
            .insert(relation, RoleCheck { commit, is_current });
        !is_covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: u32 = 16384;

    fn at(lsn: u64) -> LogPosition {
        LogPosition(lsn)
    }

    #[test]
    fn a_table_is_checked_once_for_a_batch() {
        let mut checks = RoleChecks::default();
        checks.begin_batch(None);
        assert!(checks.need_check(TABLE, at(1)));
        assert!(!checks.need_check(TABLE, at(1)));
        assert!(!checks.need_check(TABLE, at(2)));
        assert!(checks.need_check(TABLE + 1, at(2)));
        checks.begin_batch(None);
        assert!(checks.need_check(TABLE, at(3)));
    }

    #[test]
    fn the_rest_of_a_transaction_is_not_checked_again_but_later_transactions_are() {
        let mut checks = RoleChecks::default();
        checks.begin_batch(None);
        assert!(checks.need_check(TABLE, at(1)));
        checks.begin_batch(Some(at(1)));
        assert!(!checks.need_check(TABLE, at(1)));
        assert!(checks.need_check(TABLE, at(2)));
        assert!(!checks.need_check(TABLE, at(3)));
    }

    #[test]
    fn a_table_of_an_open_transaction_is_checked_if_it_was_not_yet() {
        let mut checks = RoleChecks::default();
        checks.begin_batch(None);
        assert!(checks.need_check(TABLE, at(1)));
        checks.begin_batch(Some(at(1)));
        assert!(checks.need_check(TABLE + 1, at(1)));
        checks.begin_batch(Some(at(1)));
        assert!(!checks.need_check(TABLE + 1, at(1)));
        assert!(!checks.need_check(TABLE, at(1)));
    }
}
