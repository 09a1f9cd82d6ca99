//! One connection to PostgreSQL, owned by whoever uses it: no channel, no task of its own.

mod error;
mod startup;

pub use error::{ConnectError, ConnectFault};
pub use startup::StartupPins;

use crate::config::Config;
use crate::terminator::{Backend, Terminator};
use tidegate_sql::Sharing;

/// A connection that logged in as one role.
#[derive(Debug)]
pub struct Connection {}

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
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ConnectError::fault`] sorts them.
    pub async fn open(
        _config: &Config,
        _database: &str,
        _role: &str,
        _password: &str,
        _pins: &StartupPins,
    ) -> Result<Self, ConnectError> {
        unimplemented!()
    }

    /// The server process behind the connection.
    pub fn backend(&self) -> Backend {
        unimplemented!()
    }

    /// Whether the connection can be lent. Never blocks; notices when PostgreSQL has closed the
    /// connection meanwhile.
    pub fn condition(&mut self) -> Condition {
        unimplemented!()
    }

    /// Tells who uses the connection next. Another session of the same user than before makes
    /// the connection [`Condition::Unsettled`] when anything ran since the last reset, so lend a
    /// connection to its last session where there is a choice ([`Connection::last_session`]).
    pub fn lend_to(&mut self, _sharing: Sharing) {
        unimplemented!()
    }

    /// To whom the connection was lent last.
    pub fn last_session(&self) -> Option<Sharing> {
        unimplemented!()
    }

    /// Brings the connection back to [`Condition::Ready`]: cancels what still runs (and waits
    /// until the cancel request cannot hit a later statement), terminates the backend when that
    /// does not help within a second, rolls back an open transaction, resets the session.
    ///
    /// Returns whether the connection can be used; if not, drop it.
    pub async fn settle(&mut self, _terminator: &dyn Terminator) -> bool {
        unimplemented!()
    }
}
