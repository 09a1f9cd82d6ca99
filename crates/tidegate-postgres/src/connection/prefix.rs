//! The prefix of a pipeline: the internal commands that precede a caller's statement in the same
//! pipeline. They are `BEGIN`, and the switch of a shared connection to the caller.
//!
//! The switch lasts until the transaction ends. Without `BEGIN` the transaction ends at the
//! pipeline's Sync, even after an error (PostgreSQL, "Extended Query" and `set_config`). Therefore
//! no connection keeps the identity of its previous caller.
//!
//! Internal commands run as prepared statements, because parsing them costs more than running them.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::{Error, Mode};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;

use super::{Connection, TransactionStatus};
use crate::claims_key::SET_CLAIMS;
use crate::statement::{CallerSwitch, SideEffects, StatementCache};

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
    /// The error of PostgreSQL, if it refused to switch to the caller's role or refused the sealed
    /// claims.
    refusal: Option<ServerError>,
}

impl Prefix {
    /// Whether responses to the prefix are outstanding.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Whether PostgreSQL refused to switch to the caller's role, or refused the sealed claims. In
    /// both cases the statement has had no effect.
    pub(crate) fn is_refused(&self) -> bool {
        self.refusal.is_some()
    }

    /// The error of PostgreSQL, if it refused to switch to the caller's role or refused the sealed
    /// claims; otherwise `None`.
    pub(crate) fn refusal(&self) -> Option<ServerError> {
        self.refusal.clone()
    }

    /// Records that the statement failed because the database refused the sealed claims.
    pub(crate) fn note_refused_claims(&mut self, error: ServerError) {
        self.refusal = Some(error);
    }

    /// Consumes a message that belongs to the prefix. Returns `false` if the message belongs to the
    /// statement. An error belongs to the statement unless it refuses the switch.
    pub(super) fn consume(&mut self, tag: u8, body: &[u8]) -> bool {
        if !self.is_pending() {
            return false;
        }
        match tag {
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::CLOSE_COMPLETE | tag::DATA_ROW => true,
            tag::COMMAND_COMPLETE => {
                self.pending -= 1;
                true
            }
            tag::ERROR_RESPONSE => {
                let at_switch = self.switches && self.pending == 1;
                self.pending = 0;
                // PostgreSQL skips Parse messages after the error, so it is unknown which internal
                // commands are prepared. All of them are forgotten at the end of the pipeline.
                self.failed = true;
                let error = ServerError::read(body);
                let refused = at_switch && is_refusal(&error);
                if refused {
                    self.refusal = Some(error);
                }
                refused
            }
            _ => false,
        }
    }

    /// Ends the prefix, because the pipeline has ended or was not sent. Returns whether a command
    /// of the prefix failed.
    pub(crate) fn end(&mut self) -> bool {
        self.pending = 0;
        std::mem::take(&mut self.failed)
    }
}

impl Connection {
    /// Queues the prefix for a statement: `BEGIN` if the statement opens a transaction, and the
    /// switch to the caller if the connection needs a switch. Queues nothing inside an open
    /// transaction.
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

    /// Queues a command that has no parameters and whose result is not used.
    ///
    /// The command uses the unnamed statement, which no SQL can replace.
    pub(super) fn push_command(&mut self, text: &'static str) -> Result<(), Error> {
        let out = &mut self.channel.outbound;
        let nothing = |(): (), _: &mut BytesMut| Ok(IsNull::Yes);
        frontend::parse("", text, [], out)
            .and_then(|()| {
                frontend::bind("", "", [], [], nothing, [], out)
                    .map_err(|_| io::Error::other("an empty Bind"))
            })
            .and_then(|()| frontend::execute("", 0, out))
            .map_err(Error::internal)
    }

    /// Queues a Parse for each command that is not prepared yet. No message that can fail may be
    /// queued between the previous Sync and such a Parse, because after an error PostgreSQL skips
    /// all messages up to the next Sync.
    pub(crate) fn prepare_internal(&mut self, commands: &[&'static str]) -> Result<(), Error> {
        for text in commands {
            self.prepared_internal(text)?;
        }
        Ok(())
    }

    /// Queues a prepared command that has no parameters and whose result is not used. If the
    /// command is not prepared yet, also queues its Parse.
    pub(crate) fn push_internal(&mut self, text: &'static str) -> Result<(), Error> {
        let name = self.prepared_internal(text)?;
        push_command(&name, &[], &mut self.channel.outbound)
    }

    pub(super) fn push_switch(&mut self, switch: &CallerSwitch<'_>) -> Result<(), Error> {
        let name = self.prepared_internal(switch.text())?;
        let backend = self.backend().process_id;
        let out = &mut self.channel.outbound;
        switch.with_parameters(backend, |values| push_command(&name, values, out))
    }

    /// Returns the name of the prepared statement for a command. If the command is not prepared
    /// yet, queues its Parse, preceded by a Close for each prepared statement that the cache no
    /// longer holds.
    pub(crate) fn prepared_internal(&mut self, text: &'static str) -> Result<String, Error> {
        let (name, is_new) = self.session.statements.internal_name(text);
        if is_new {
            if text == SET_CLAIMS {
                self.session.begin_sealing();
            }
            let out = &mut self.channel.outbound;
            let mut closed = self.session.statements.close_dropped().iter();
            closed
                .try_for_each(|name| frontend::close(b'S', name, out))
                .and_then(|()| frontend::parse(&name, text, [], out))
                .map_err(Error::internal)?;
        }
        Ok(name)
    }

    /// Forgets all internal commands, because it is unknown which of them are prepared. A
    /// connection that has sealed claims of members must then be reset before its next use. SQL may
    /// have replaced a command by another prepared statement, and only the reset detects the
    /// replacement.
    pub(crate) fn forget_internal(&mut self) {
        self.session.statements.forget_internal();
        if self.session.is_sealing() {
            self.session.note_side_effects(SideEffects::Session);
        }
    }
}

/// Queues the switch to a caller. Returns `None`, and queues nothing, if the switch is not prepared
/// on the connection. `backend` is the process id of the connection's backend.
pub(crate) fn push_prepared_switch(
    statements: &StatementCache,
    switch: &CallerSwitch<'_>,
    backend: i32,
    out: &mut BytesMut,
) -> Option<()> {
    let name = statements.prepared_internal(switch.text())?;
    switch.with_parameters(backend, |values| push_command(name, values, out).ok())
}

/// Queues a prepared command. Its parameters are in binary format, which for text is the same as
/// text format.
fn push_command(name: &str, values: &[&[u8]], out: &mut BytesMut) -> Result<(), Error> {
    let encode = |value: &&[u8], out: &mut BytesMut| {
        out.extend_from_slice(value);
        Ok(IsNull::No)
    };
    frontend::bind("", name, [1], values, encode, [0], out)
        .map_err(|_| io::Error::other("a command that cannot be sent"))
        .and_then(|()| frontend::execute("", 0, out))
        .map_err(Error::internal)
}

/// Whether the error refuses the switch. Errors of the classes 57, 53 and 58 have other causes: the
/// session ends, the statement was cancelled, or the server lacks a resource.
fn is_refusal(error: &ServerError) -> bool {
    let class = error.rejection.sqlstate.get(..2);
    !error.rejection.fatal && !matches!(class, Some("57" | "53" | "58"))
}
