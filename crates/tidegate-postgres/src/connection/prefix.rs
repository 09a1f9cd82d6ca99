//! Internal commands before a caller's statement in the same pipeline: `BEGIN`, and the switch from
//! the role of a shared connection to the caller's role.
//!
//! The switch lasts for the transaction, which without `BEGIN` ends at the pipeline's Sync, even
//! after an error (PostgreSQL, "Extended Query" and `set_config`). Therefore no connection keeps
//! the role of its last caller.

use tidegate_sql::{Error, Mode};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;

use super::{Connection, TransactionStatus};
use crate::statement::RoleSwitch;

/// Starts a snapshot transaction.
pub(crate) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The outstanding responses to the prefix of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// Commands that have not completed.
    pending: u8,
    /// Whether the last command is a role switch.
    switches: bool,
    /// Whether a command of the prefix failed.
    failed: bool,
    /// The error with which PostgreSQL refused the switch.
    refusal: Option<ServerError>,
}

impl Prefix {
    /// Whether responses to the prefix are outstanding.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Whether PostgreSQL refused the last switch. Then no part of the statement has run.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Expects no more responses, because the pipeline has ended or was not sent. Returns whether a
    /// command of the prefix failed.
    pub(crate) fn end(&mut self) -> bool {
        self.pending = 0;
        std::mem::take(&mut self.failed)
    }
}

impl Connection {
    /// Queues the prefix of a statement. If no transaction is open, that is `BEGIN` for a statement
    /// that opens one, and the role switch if the connection needs one.
    pub(crate) fn push_prefix(
        &mut self,
        begin: Option<Mode>,
        switch: Option<RoleSwitch<'_>>,
    ) -> Result<(), Error> {
        self.session.prefix = Prefix::default();
        if self.session.transaction() != TransactionStatus::Idle {
            return Ok(());
        }
        if let Some(mode) = begin {
            match mode {
                Mode::ReadWrite => self.push_command("BEGIN ISOLATION LEVEL READ COMMITTED")?,
                Mode::Snapshot => {
                    self.prepare_internal(&[SNAPSHOT])?;
                    self.push_internal(SNAPSHOT)?;
                }
            }
            self.session.prefix.pending += 1;
        }
        if let Some(switch) = switch {
            self.push_internal_with(switch.text, switch.role.as_str())?;
            self.session.prefix.pending += 1;
            self.session.prefix.switches = true;
        }
        Ok(())
    }

    /// Prepares the role switch in a pipeline of its own.
    pub(crate) fn prepare_switch(&mut self, text: Option<&'static str>) -> Result<(), Error> {
        self.begin_pipeline();
        if let Some(text) = text {
            self.prepare_internal(&[text])?;
        }
        self.sync();
        Ok(())
    }

    /// Consumes a message that belongs to the prefix; returns `false` if it belongs to the
    /// statement. An error that does not refuse the switch belongs to the statement.
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
                // Internal commands are forgotten at the end of the pipeline, because PostgreSQL
                // skips their Parse messages after the error.
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
