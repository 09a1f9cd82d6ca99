//! What is known of a session: what was sent and is not answered, where its transaction stands, and
//! what statements have left in it. It does no I/O.

use super::Condition;
use crate::session::cache::StatementCache;
use crate::session::names::Names;
use crate::session::prefix::Prefix;
use crate::session::reset::{CHECK_ROWS, Residue};

/// The transaction status that `ReadyForQuery` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionStatus {
    /// `I`
    Idle,
    /// `T`
    Open,
    /// `E`
    Failed,
}

/// What was sent and is not answered. `outstanding` counts the `ReadyForQuery` still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Quiet,
    /// Messages without a Sync behind them.
    Open { outstanding: u32 },
    /// Each message has its Sync.
    Sent { outstanding: u32 },
    /// The same, and the last `answers` are those of a reset, of which `rows` have come.
    Resetting {
        outstanding: u32,
        answers: u32,
        rows: u32,
    },
    /// The connection cannot be used any more; PostgreSQL may still work for it.
    Lost { may_run: bool },
}

/// The state of a session.
#[derive(Debug)]
pub(crate) struct SessionState {
    phase: Phase,
    transaction: TransactionStatus,
    residue: Residue,
    /// What names mean, as far as that is known.
    pub(crate) names: Names,
    /// The `search_path` that the session began with.
    pub(crate) search_path: String,
    /// What is prepared.
    pub(crate) statements: StatementCache,
    /// How far the commands in front of the statement are answered.
    pub(crate) prefix: Prefix,
    /// Whether the event trigger has reported that a statement changed a definition.
    redefined: bool,
}

impl SessionState {
    /// The state of a session that has just begun.
    pub(super) fn new(search_path: &str, statements: StatementCache) -> Self {
        Self {
            phase: Phase::Quiet,
            transaction: TransactionStatus::Idle,
            residue: Residue::None,
            names: Names::Own,
            search_path: search_path.to_owned(),
            statements,
            prefix: Prefix::default(),
            redefined: false,
        }
    }

    pub(crate) fn transaction(&self) -> TransactionStatus {
        self.transaction
    }

    /// What statements have left since the last reset.
    pub(crate) fn residue(&self) -> Residue {
        self.residue
    }

    /// Notes what a statement may leave.
    pub(crate) fn leave(&mut self, residue: Residue) {
        self.residue = self.residue.max(residue);
    }

    /// Notes that the event trigger has reported a definition.
    pub(super) fn note_redefinition(&mut self) {
        self.redefined = true;
    }

    /// Whether the event trigger has reported a definition.
    pub(crate) fn is_redefined(&self) -> bool {
        self.redefined
    }

    /// Whether a definition has been reported since this was asked last.
    pub(crate) fn take_redefinition(&mut self) -> bool {
        std::mem::take(&mut self.redefined)
    }

    fn outstanding(&self) -> u32 {
        match self.phase {
            Phase::Open { outstanding }
            | Phase::Sent { outstanding }
            | Phase::Resetting { outstanding, .. } => outstanding,
            Phase::Quiet | Phase::Lost { .. } => 0,
        }
    }

    /// Messages are queued without a Sync behind them.
    pub(super) fn open_pipeline(&mut self) {
        self.leave(Residue::Reads);
        self.statements.begin_pipeline();
        if !self.is_lost() {
            self.phase = Phase::Open {
                outstanding: self.outstanding(),
            };
        }
    }

    /// The messages of an open pipeline were taken back before they were sent.
    pub(super) fn withdraw_pipeline(&mut self) {
        self.statements.withdraw_pipeline();
        if let Phase::Open { outstanding } = self.phase {
            self.phase = match outstanding {
                0 => Phase::Quiet,
                outstanding => Phase::Sent { outstanding },
            };
        }
    }

    /// So many more Syncs, or queries of the simple protocol, are queued.
    pub(super) fn expect_answers(&mut self, count: u32) {
        if !self.is_lost() {
            self.phase = Phase::Sent {
                outstanding: self.outstanding() + count,
            };
        }
    }

    /// `ReadyForQuery` has come.
    pub(super) fn answered(&mut self, transaction: TransactionStatus) {
        self.transaction = transaction;
        match &mut self.phase {
            Phase::Sent { outstanding: 0 | 1 } => self.phase = Phase::Quiet,
            Phase::Open { outstanding }
            | Phase::Sent { outstanding }
            | Phase::Resetting { outstanding, .. } => *outstanding = outstanding.saturating_sub(1),
            Phase::Quiet | Phase::Lost { .. } => {}
        }
    }

    /// The last `answers` expected are those of a reset.
    pub(crate) fn begin_reset(&mut self, residue: Residue, answers: u32) {
        self.leave(residue);
        if !self.is_lost() {
            self.phase = Phase::Resetting {
                outstanding: self.outstanding(),
                answers,
                rows: 0,
            };
        }
    }

    /// A row has come while answers without a reader are skipped.
    pub(super) fn count_reset_row(&mut self) {
        if let Phase::Resetting { rows, .. } = &mut self.phase {
            *rows = rows.saturating_add(1);
        }
    }

    /// The check of a reset is not prepared any more, because a statement has deallocated it.
    pub(super) fn lose_check(&mut self) {
        if let Phase::Resetting { rows, .. } = &mut self.phase {
            *rows = CHECK_ROWS + 1;
        }
    }

    /// All answers of a reset have come, without an error. A soft one may have found statements that
    /// SQL has prepared: then a full one is due.
    pub(super) fn end_reset(&mut self) {
        let (before, phase) = (self.residue, self.phase);
        self.end_interruption();
        self.names = Names::Own;
        self.residue = match phase {
            Phase::Resetting { rows, .. } if before <= Residue::Session && rows > CHECK_ROWS => {
                Residue::Statements
            }
            _ => Residue::None,
        };
        if before == Residue::Permanent {
            self.lose();
        }
    }

    /// What ran was cancelled, and its answers have been read.
    pub(super) fn end_interruption(&mut self) {
        if !self.is_lost() && self.outstanding() == 0 {
            self.phase = Phase::Quiet;
        }
    }

    /// The connection cannot be used any more.
    pub(super) fn lose(&mut self) {
        self.phase = Phase::Lost {
            may_run: self.may_run(),
        };
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.phase, Phase::Lost { .. })
    }

    /// Whether answers are expected.
    pub(super) fn is_waiting(&self) -> bool {
        self.outstanding() > 0
    }

    /// Whether messages are queued without a Sync behind them.
    pub(super) fn is_pipeline_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// Whether PostgreSQL may still work for the connection.
    pub(super) fn may_run(&self) -> bool {
        match self.phase {
            Phase::Lost { may_run } => may_run,
            Phase::Open { .. } => true,
            _ => self.is_waiting(),
        }
    }

    /// Whether the next answer is one of a reset.
    pub(super) fn is_resetting(&self) -> bool {
        matches!(self.phase, Phase::Resetting { outstanding, answers, .. } if outstanding <= answers)
    }

    /// Whether the connection can be lent; `all_sent` tells that no message is left to be sent.
    pub(super) fn condition(&self, all_sent: bool) -> Condition {
        let is_initial =
            self.transaction == TransactionStatus::Idle && !self.residue.is_reset_due();
        match self.phase {
            Phase::Lost { .. } => Condition::Closed,
            Phase::Quiet if all_sent && is_initial => Condition::Ready,
            Phase::Resetting { .. } if all_sent && self.is_resetting() => Condition::Resetting,
            _ => Condition::Unsettled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> SessionState {
        SessionState::new("public", StatementCache::new(1))
    }

    #[test]
    fn a_harmless_read_leaves_a_connection_ready_and_another_session_needs_a_reset() {
        let mut state = state();
        state.open_pipeline();
        assert!(state.may_run() && state.is_pipeline_open());
        state.expect_answers(1);
        assert_eq!(state.condition(true), Condition::Unsettled);
        state.answered(TransactionStatus::Idle);
        assert_eq!(state.condition(true), Condition::Ready);
        assert_eq!(state.condition(false), Condition::Unsettled);
        assert_eq!(state.residue(), Residue::Reads);
        state.leave(Residue::Session);
        assert_eq!(state.condition(true), Condition::Unsettled);
    }

    #[test]
    fn a_reset_behind_a_statement_counts_once_the_statement_is_answered() {
        let mut state = state();
        state.open_pipeline();
        state.leave(Residue::Session);
        state.expect_answers(3);
        state.begin_reset(Residue::Session, 2);
        assert!(!state.is_resetting());
        state.answered(TransactionStatus::Idle);
        assert_eq!(state.condition(true), Condition::Resetting);
        state.answered(TransactionStatus::Idle);
        (0..CHECK_ROWS).for_each(|_| state.count_reset_row());
        state.answered(TransactionStatus::Idle);
        assert_eq!(state.condition(true), Condition::Resetting);
        state.end_reset();
        assert_eq!(
            (state.condition(true), state.residue()),
            (Condition::Ready, Residue::None)
        );
    }

    #[test]
    fn a_soft_reset_that_finds_prepared_statements_is_followed_by_a_full_one() {
        for lost in [false, true] {
            let mut state = state();
            state.expect_answers(2);
            state.begin_reset(Residue::Session, 2);
            state.count_reset_row();
            if lost {
                state.lose_check();
            } else {
                (0..CHECK_ROWS).for_each(|_| state.count_reset_row());
            }
            (0..2).for_each(|_| state.answered(TransactionStatus::Idle));
            state.end_reset();
            assert_eq!(state.condition(true), Condition::Unsettled);
            assert_eq!(state.residue(), Residue::Statements);
        }
    }

    #[test]
    fn what_no_reset_removes_costs_the_connection() {
        let mut state = state();
        state.leave(Residue::Permanent);
        state.expect_answers(2);
        state.begin_reset(Residue::Permanent, 2);
        (0..2).for_each(|_| state.answered(TransactionStatus::Idle));
        state.end_reset();
        assert_eq!(state.condition(true), Condition::Closed);
        assert!(!state.may_run());
    }

    #[test]
    fn nothing_brings_a_lost_connection_back() {
        let mut state = state();
        state.open_pipeline();
        state.lose();
        state.expect_answers(1);
        state.answered(TransactionStatus::Idle);
        state.end_interruption();
        assert_eq!(state.condition(true), Condition::Closed);
        assert!(state.may_run(), "PostgreSQL has not answered");
    }

    #[test]
    fn a_pipeline_that_was_taken_back_was_never_there() {
        let mut state = state();
        state.open_pipeline();
        state.withdraw_pipeline();
        assert_eq!(state.condition(true), Condition::Ready);
        assert!(!state.may_run());
    }
}
