//! The tracked state of a session: outstanding responses, the transaction, and side effects of
//! statements. This module does no I/O.

use std::time::Duration;

use tokio::time::Instant;

use super::ConnectionState;
use super::prefix::Prefix;
use super::reset::CHECK_ROWS;
use crate::statement::{NameResolution, SideEffects, StatementCache};

/// The transaction status that `ReadyForQuery` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionStatus {
    /// The status byte `I`: no transaction is open.
    Idle,
    /// The status byte `T`: a transaction is open.
    Open,
    /// The status byte `E`: the open transaction has failed.
    Failed,
}

/// How long a session that seals claims of members may be used for pure reads before it is reset.
/// A node uses cached untrusted names of a database for the same time. Until it reads them again, a
/// read may count as pure although it runs new code.
const LONGEST_WITHOUT_RESET: Duration = Duration::from_secs(1);

/// Which queued messages have no response yet. `outstanding` is the number of expected
/// `ReadyForQuery` messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No response is expected.
    Idle,
    /// The most recently queued messages have no Sync yet.
    PipelineOpen { outstanding: u32 },
    /// A Sync follows all messages that were queued.
    Waiting { outstanding: u32 },
    /// A Sync follows all messages. The last `responses` of the `outstanding` responses belong to a
    /// reset, which has returned `rows` rows so far.
    Resetting {
        outstanding: u32,
        responses: u32,
        rows: u32,
    },
    /// The connection is unusable. `may_run` says whether PostgreSQL may still run a statement of
    /// the connection.
    Closed { may_run: bool },
}

#[derive(Debug)]
pub(crate) struct SessionState {
    phase: Phase,
    transaction: TransactionStatus,
    side_effects: SideEffects,
    /// Whether names still resolve as at the start of the session.
    pub(crate) name_resolution: NameResolution,
    /// The `search_path` at the start of the session.
    pub(crate) search_path: String,
    pub(crate) statements: StatementCache,
    /// Outstanding responses to the prefix of the pipeline.
    pub(crate) prefix: Prefix,
    /// Whether the event trigger has reported, since the most recent call of [`Self::take_ddl`],
    /// that a statement changed a definition.
    ddl_reported: bool,
    /// Whether the statement that seals the claims of members has been prepared in this session. It
    /// stays true until the connection closes.
    sealing: bool,
    /// When the session was most recently reset; before the first reset, when the session began.
    reset_at: Instant,
}

impl SessionState {
    pub(super) fn new(search_path: &str, statements: StatementCache) -> Self {
        Self {
            phase: Phase::Idle,
            transaction: TransactionStatus::Idle,
            side_effects: SideEffects::None,
            name_resolution: NameResolution::Initial,
            search_path: search_path.to_owned(),
            statements,
            prefix: Prefix::default(),
            ddl_reported: false,
            sealing: false,
            reset_at: Instant::now(),
        }
    }

    /// Records that the statement that seals claims of members is prepared. A connection that has
    /// sealed claims serves only members until it is closed.
    pub(super) fn begin_sealing(&mut self) {
        self.sealing = true;
    }

    /// Whether the statement that seals the claims of members has been prepared in this session.
    pub(crate) fn is_sealing(&self) -> bool {
        self.sealing
    }

    /// Whether the session must be reset before its next use, because it seals claims of members
    /// and its most recent reset is at least [`LONGEST_WITHOUT_RESET`] ago.
    pub(super) fn is_periodic_reset_due(&self, now: Instant) -> bool {
        self.sealing && now.saturating_duration_since(self.reset_at) >= LONGEST_WITHOUT_RESET
    }

    pub(crate) fn transaction(&self) -> TransactionStatus {
        self.transaction
    }

    /// The side effects since the most recent reset.
    pub(crate) fn side_effects(&self) -> SideEffects {
        self.side_effects
    }

    /// Records the side effects that a statement may have.
    pub(crate) fn note_side_effects(&mut self, side_effects: SideEffects) {
        self.side_effects = self.side_effects.max(side_effects);
    }

    /// Records that the event trigger has reported a changed definition.
    pub(super) fn note_ddl(&mut self) {
        self.ddl_reported = true;
    }

    /// Whether the event trigger has reported a changed definition since the most recent call of
    /// [`Self::take_ddl`].
    pub(crate) fn has_ddl(&self) -> bool {
        self.ddl_reported
    }

    /// Returns whether a changed definition has been reported since the previous call.
    pub(crate) fn take_ddl(&mut self) -> bool {
        std::mem::take(&mut self.ddl_reported)
    }

    fn outstanding(&self) -> u32 {
        match self.phase {
            Phase::PipelineOpen { outstanding }
            | Phase::Waiting { outstanding }
            | Phase::Resetting { outstanding, .. } => outstanding,
            Phase::Idle | Phase::Closed { .. } => 0,
        }
    }

    /// Records that the messages queued next have no Sync yet.
    pub(super) fn open_pipeline(&mut self) {
        self.note_side_effects(SideEffects::Reads);
        self.statements.begin_pipeline();
        if !self.is_closed() {
            self.phase = Phase::PipelineOpen {
                outstanding: self.outstanding(),
            };
        }
    }

    /// Records that the open pipeline was discarded before it was sent.
    pub(super) fn withdraw_pipeline(&mut self) {
        self.statements.withdraw_pipeline();
        if let Phase::PipelineOpen { outstanding } = self.phase {
            self.phase = match outstanding {
                0 => Phase::Idle,
                outstanding => Phase::Waiting { outstanding },
            };
        }
    }

    /// Records that `count` more Syncs or simple queries were queued.
    pub(super) fn expect_responses(&mut self, count: u32) {
        if !self.is_closed() {
            self.phase = Phase::Waiting {
                outstanding: self.outstanding() + count,
            };
        }
    }

    /// Records a `ReadyForQuery` message.
    pub(super) fn ready_received(&mut self, transaction: TransactionStatus) {
        self.transaction = transaction;
        match &mut self.phase {
            Phase::Waiting { outstanding: 0 | 1 } => self.phase = Phase::Idle,
            Phase::PipelineOpen { outstanding }
            | Phase::Waiting { outstanding }
            | Phase::Resetting { outstanding, .. } => *outstanding = outstanding.saturating_sub(1),
            Phase::Idle | Phase::Closed { .. } => {}
        }
    }

    /// Records that a reset was queued. The last `responses` of the outstanding responses belong to
    /// the reset.
    pub(crate) fn begin_reset(&mut self, side_effects: SideEffects, responses: u32) {
        self.note_side_effects(side_effects);
        if !self.is_closed() {
            self.phase = Phase::Resetting {
                outstanding: self.outstanding(),
                responses,
                rows: 0,
            };
        }
    }

    pub(super) fn count_reset_row(&mut self) {
        if let Phase::Resetting { rows, .. } = &mut self.phase {
            *rows = rows.saturating_add(1);
        }
    }

    /// Records that a statement of the caller deallocated the prepared `CHECK` of the reset. The
    /// reset then ends as if it had found statements that callers prepared.
    pub(super) fn note_check_deallocated(&mut self) {
        if let Phase::Resetting { rows, .. } = &mut self.phase {
            *rows = CHECK_ROWS + 1;
        }
    }

    /// Records that all responses of a reset arrived without an error.
    ///
    /// A soft reset does not run `DISCARD ALL`. If it found statements that callers prepared, a
    /// full reset is due.
    ///
    /// A session that seals claims of members is closed instead. A statement that a caller prepared
    /// may have replaced the prepared statement that seals claims. It may then have read the token
    /// with which a member's claims are sealed (`ClaimsKey::token`). The token stays valid as long
    /// as the backend exists, so another reset would not help.
    ///
    /// The session is also closed if its side effects are [`SideEffects::Permanent`].
    pub(super) fn end_reset(&mut self, now: Instant) {
        let (before, phase) = (self.side_effects, self.phase);
        self.end_drain();
        self.reset_at = now;
        if self.sealing
            && !matches!(
                phase,
                Phase::Resetting {
                    rows: CHECK_ROWS,
                    ..
                }
            )
        {
            return self.close();
        }
        self.name_resolution = NameResolution::Initial;
        self.side_effects = match phase {
            Phase::Resetting { rows, .. }
                if before <= SideEffects::Session && rows > CHECK_ROWS =>
            {
                SideEffects::Statements
            }
            _ => SideEffects::None,
        };
        if before == SideEffects::Permanent {
            self.close();
        }
    }

    /// Records that the output of a cancelled statement or of a reset was read. The session becomes
    /// idle if no response is outstanding.
    pub(super) fn end_drain(&mut self) {
        if !self.is_closed() && self.outstanding() == 0 {
            self.phase = Phase::Idle;
        }
    }

    /// Marks the connection as unusable.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed {
            may_run: self.may_run(),
        };
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed { .. })
    }

    /// Whether responses are outstanding.
    pub(super) fn is_waiting(&self) -> bool {
        self.outstanding() > 0
    }

    /// Whether messages are queued without a Sync.
    pub(super) fn is_pipeline_open(&self) -> bool {
        matches!(self.phase, Phase::PipelineOpen { .. })
    }

    /// Whether PostgreSQL may still run a statement of the connection.
    pub(super) fn may_run(&self) -> bool {
        match self.phase {
            Phase::Closed { may_run } => may_run,
            Phase::PipelineOpen { .. } => true,
            _ => self.is_waiting(),
        }
    }

    /// Whether the next response belongs to a reset.
    pub(super) fn is_resetting(&self) -> bool {
        matches!(self.phase, Phase::Resetting { outstanding, responses, .. } if outstanding <= responses)
    }

    /// The state of the connection. `all_sent` says whether the send buffer is empty.
    pub(super) fn state(&self, all_sent: bool) -> ConnectionState {
        let is_initial =
            self.transaction == TransactionStatus::Idle && !self.side_effects.is_reset_due();
        match self.phase {
            Phase::Closed { .. } => ConnectionState::Closed,
            Phase::Idle if all_sent && is_initial => ConnectionState::Idle,
            Phase::Resetting { .. } if all_sent && self.is_resetting() => {
                ConnectionState::Resetting
            }
            _ => ConnectionState::NeedsRecovery,
        }
    }
}

#[cfg(test)]
mod tests;
