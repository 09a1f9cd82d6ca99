//! Internal commands before a caller's statement in the same pipeline: `BEGIN`, and the switch of a
//! shared connection to the caller.
//!
//! The switch lasts until the transaction ends. Without `BEGIN` the transaction ends at the
//! pipeline's Sync, even after an error (PostgreSQL, "Extended Query" and `set_config`). Therefore
//! no connection keeps the identity of its last caller.

use tidegate_sql::{Error, Mode};
use tidegate_wire::rejection::ServerError;
use tidegate_wire::tag;

use super::{Connection, TransactionStatus};
use crate::statement::CallerSwitch;

/// Starts a snapshot transaction.
pub(crate) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The outstanding responses to the prefix of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    /// How many commands of the prefix have not completed.
    pending: u8,
    /// Whether the last command of the prefix is a switch to the caller.
    switches: bool,
    /// Whether a command of the prefix failed.
    failed: bool,
    /// The error with which PostgreSQL refused the switch to the caller or the sealed claims.
    refusal: Option<ServerError>,
}

impl Prefix {
    /// Whether responses to the prefix are outstanding.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Whether PostgreSQL refused the switch to the caller or the sealed claims. In that case the
    /// statement has had no effect.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// Records that the statement failed because the database refused the sealed claims.
    pub(crate) fn refuse(&mut self, error: ServerError) {
        self.refusal = Some(error);
    }

    /// Ends the prefix, because the pipeline has ended or was not sent. Returns whether a command
    /// of the prefix failed.
    pub(crate) fn end(&mut self) -> bool {
        self.pending = 0;
        std::mem::take(&mut self.failed)
    }
}

impl Connection {
    /// Queues the prefix of a statement: `BEGIN` if the statement opens a transaction, and the
    /// switch to the caller if the connection needs one. Queues nothing inside an open transaction.
    pub(crate) fn push_prefix(
        &mut self,
        begin: Option<Mode>,
        switch: Option<CallerSwitch<'_>>,
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
            self.push_switch(&switch)?;
            self.session.prefix.pending += 1;
            self.session.prefix.switches = true;
        }
        Ok(())
    }

    /// Queues a pipeline that prepares the switch `text`. With `None`, the pipeline contains only a
    /// Sync.
    pub(crate) fn prepare_switch(&mut self, text: Option<&'static str>) -> Result<(), Error> {
        self.begin_pipeline();
        if let Some(text) = text {
            self.prepare_internal(&[text])?;
        }
        self.sync();
        Ok(())
    }

    /// Consumes a message that belongs to the prefix. Returns `false` if the message belongs to the
    /// statement, which includes every error that does not refuse the switch.
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
                // PostgreSQL skips Parse messages after the error, so it is unknown which internal
                // commands are prepared. The end of the pipeline forgets them all.
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

    /// The error with which PostgreSQL refused the switch or the sealed claims; `None` if it did
    /// not.
    pub(crate) fn refusal(&self) -> Option<ServerError> {
        self.session.prefix.refusal.clone()
    }
}

/// Whether the error refuses the switch. Errors of the classes 57, 53 and 58 have other causes: the
/// session ends, the statement was cancelled, or the server lacks a resource.
fn is_refusal(error: &ServerError) -> bool {
    let class = error.rejection.sqlstate.get(..2);
    !error.rejection.fatal && !matches!(class, Some("57" | "53" | "58"))
}
