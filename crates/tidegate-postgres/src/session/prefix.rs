//! Commands of ours in front of a caller's statement, in the same pipeline: `BEGIN`, and the switch
//! from a shared connection's own role to the caller's.
//!
//! The switch lasts as long as the transaction, which in a pipeline without `BEGIN` ends at its
//! Sync, also after an error (PostgreSQL, "Extended Query" and `set_config`). So no connection keeps
//! the role of its last caller.

use tidegate_sql::{Error, Mode, RoleName};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;

use crate::connection::{Connection, TransactionStatus};

/// What opens a snapshot.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The switch to a caller's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch<'a> {
    /// The caller's role.
    pub(crate) role: &'a RoleName,
    /// A `SELECT` that switches to the role in its one parameter, until the transaction ends. When it
    /// fails, nothing behind it runs.
    pub(crate) text: &'static str,
}

/// How far PostgreSQL has answered the prefix of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// Commands whose completion has not come.
    pending: u8,
    /// Whether the last of them is a switch.
    switches: bool,
    /// Whether an error came of it.
    failed: bool,
    /// Why PostgreSQL refused the switch.
    refusal: Option<ServerError>,
}

impl Prefix {
    /// Whether answers of the prefix are to come.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Whether the last prefix was refused at its switch, so that nothing of the statement has run.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Expects no more answers, because the pipeline has ended or was never sent; whether an error
    /// came of it.
    pub(crate) fn end(&mut self) -> bool {
        self.pending = 0;
        std::mem::take(&mut self.failed)
    }
}

impl Connection {
    /// Queues what goes in front of a statement: where no transaction is open, `BEGIN` if it opens
    /// one, and the switch if the connection needs one.
    pub(crate) fn push_prefix(
        &mut self,
        begin: Option<Mode>,
        switch: Option<Switch<'_>>,
    ) -> Result<(), Error> {
        self.session.prefix = Prefix::default();
        if self.session.transaction() != TransactionStatus::Idle {
            return Ok(());
        }
        if let Some(mode) = begin {
            match mode {
                Mode::ReadWrite => self.push_command("BEGIN ISOLATION LEVEL READ COMMITTED")?,
                Mode::Snapshot => {
                    self.prepare_own(&[SNAPSHOT])?;
                    self.push_own(SNAPSHOT)?;
                }
            }
            self.session.prefix.pending += 1;
        }
        if let Some(switch) = switch {
            self.push_own_with(switch.text, switch.role.as_str())?;
            self.session.prefix.pending += 1;
            self.session.prefix.switches = true;
        }
        Ok(())
    }

    /// Prepares the switch and nothing else, in a pipeline of its own.
    pub(crate) fn prepare_switch(&mut self, text: Option<&'static str>) -> Result<(), Error> {
        self.begin_pipeline();
        if let Some(text) = text {
            self.prepare_own(&[text])?;
        }
        self.sync();
        Ok(())
    }

    /// Takes a message that belongs to the prefix; `false` if it belongs to what follows. An error
    /// other than a refused switch belongs to what follows.
    pub(crate) fn take_prefix(&mut self, tag: u8) -> bool {
        if !self.session.prefix.is_pending() {
            return false;
        }
        match tag {
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::CLOSE_COMPLETE | tag::DATA_ROW => true,
            tag::COMMAND_COMPLETE => {
                self.session.prefix.pending -= 1;
                true
            }
            tag::ERROR_RESPONSE => {
                let at_switch = self.session.prefix.switches && self.session.prefix.pending == 1;
                self.session.prefix.pending = 0;
                // Our commands are forgotten at the end of the pipeline: PostgreSQL would skip a
                // Parse that is queued in front of it.
                self.session.prefix.failed = true;
                let error = ServerError::read(self.channel.inbound.body());
                let refused = at_switch && is_refusal(&error);
                if refused {
                    self.session.prefix.refusal = Some(error);
                }
                refused
            }
            _ => false,
        }
    }

    /// The error of a refused switch.
    pub(crate) fn refusal(&self) -> Option<ServerError> {
        self.session.prefix.refusal.clone()
    }
}

/// Whether the error says that the role cannot be taken, and not that the session ends, that the
/// statement was cancelled or that the server lacks something (classes 57, 53, 58).
fn is_refusal(error: &ServerError) -> bool {
    let class = error.rejection.sqlstate.get(..2);
    !error.rejection.fatal && !matches!(class, Some("57" | "53" | "58"))
}
