//! Whether a connection can be lent.

use super::{Connection, TransactionStatus};
use crate::session::reset::Residue;

/// Whether a connection can be lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Idle, in its initial session state.
    Ready,
    /// The reset has been sent and nothing else is open: put it back; whoever takes it next calls
    /// [`Connection::settle`] first, which then waits for microseconds at most.
    Resetting,
    /// A statement may still run, or a reset is due: [`Connection::settle`] in the background
    /// before it is put back.
    Unsettled,
    /// Nothing can be done with it any more: drop it.
    Closed,
}

impl Connection {
    /// Whether the connection can be lent. Never blocks.
    pub fn condition(&self) -> Condition {
        if self.broken {
            return Condition::Closed;
        }
        let quiet = self.channel.outbound.is_empty() && !self.unsynced;
        let initial = self.transaction == TransactionStatus::Idle && self.residue == Residue::None;
        match self.outstanding {
            0 if quiet && initial => Condition::Ready,
            _ if quiet && self.is_resetting() => Condition::Resetting,
            _ => Condition::Unsettled,
        }
    }

    /// Whether PostgreSQL still holds an idle connection. Never blocks.
    pub fn is_open(&mut self) -> bool {
        match self.condition() {
            Condition::Closed => return false,
            // The answer of the reset is expected, an end of the stream shows when it is read.
            Condition::Resetting | Condition::Unsettled => return true,
            Condition::Ready => {}
        }
        // What an idle session hears is a notice, a setting reloaded by the administrator, or the
        // announcement of its end. A fresh connection costs less than telling them apart.
        if self.channel.has_stirred() {
            self.give_up();
        }
        !self.broken
    }

    /// Tells that another session of the same user takes over: if anything ran since the last
    /// reset, the connection is [`Condition::Unsettled`].
    pub fn change_session(&mut self) {
        if self.used {
            self.residue = self.residue.max(Residue::Session);
        }
    }
}
