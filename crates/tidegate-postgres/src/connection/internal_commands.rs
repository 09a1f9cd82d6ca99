//! Runs Tidegate's own commands as prepared statements, because parsing these commands costs more
//! than running them.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;

use super::Connection;
use crate::claims_key::SET_CLAIMS;
use crate::statement::{CallerSwitch, SideEffects, StatementCache};

impl Connection {
    /// Queues a command that has no parameters and whose result is not used.
    ///
    /// The command uses the unnamed statement, which no SQL can replace.
    pub(super) fn push_command(&mut self, text: &'static str) -> Result<(), Error> {
        let out = &mut self.channel.outbound;
        let nothing = |(): (), _: &mut bytes::BytesMut| Ok(postgres_protocol::IsNull::Yes);
        frontend::parse("", text, [], out)
            .and_then(|()| {
                frontend::bind("", "", [], [], nothing, [], out)
                    .map_err(|_| std::io::Error::other("an empty Bind"))
            })
            .and_then(|()| frontend::execute("", 0, out))
            .map_err(Error::internal)
    }

    /// Queues a Parse for each command that is not prepared yet. No message that can fail may be
    /// queued between the previous Sync and such a Parse, because PostgreSQL would skip the Parse
    /// after an error.
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

    /// Queues the switch to a caller.
    pub(super) fn push_switch(&mut self, switch: &CallerSwitch<'_>) -> Result<(), Error> {
        let name = self.prepared_internal(switch.text())?;
        let backend = self.backend().process_id;
        let out = &mut self.channel.outbound;
        switch.with_parameters(backend, |values| push_command(&name, values, out))
    }

    /// Returns the name of the prepared statement for a command. If the command is not prepared
    /// yet, queues its Parse, preceded by a Close for each dropped statement.
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
    /// connection of members is then reset before its next use. If SQL has replaced one of the
    /// commands, the reset has to find the replacement before it is closed.
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
