//! Tidegate's own commands. They stay prepared, because parsing them costs more than running them.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;

use super::Connection;
use crate::statement::StatementCache;

impl Connection {
    /// Queues a command without parameters and result.
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

    /// Queues a Parse for each command that is not prepared yet. Nothing that can fail may be
    /// queued between the previous Sync and a Parse, or PostgreSQL would skip the Parse.
    pub(crate) fn prepare_internal(&mut self, commands: &[&'static str]) -> Result<(), Error> {
        for text in commands {
            self.prepared_internal(text)?;
        }
        Ok(())
    }

    /// Queues a prepared command without parameters and result.
    pub(crate) fn push_internal(&mut self, text: &'static str) -> Result<(), Error> {
        let name = self.prepared_internal(text)?;
        push_command(&name, None, &mut self.channel.outbound)
    }

    /// Queues a prepared command with one parameter in text form.
    pub(crate) fn push_internal_with(
        &mut self,
        text: &'static str,
        value: &str,
    ) -> Result<(), Error> {
        let name = self.prepared_internal(text)?;
        push_command(&name, Some(value), &mut self.channel.outbound)
    }

    /// Returns the name of a command. If it is not prepared, queues its Parse, preceded by a Close
    /// for each dropped statement.
    fn prepared_internal(&mut self, text: &'static str) -> Result<String, Error> {
        let (name, is_new) = self.session.statements.own(text);
        if is_new {
            let out = &mut self.channel.outbound;
            let mut closed = self.session.statements.close_dropped().iter();
            closed
                .try_for_each(|name| frontend::close(b'S', name, out))
                .and_then(|()| frontend::parse(&name, text, [], out))
                .map_err(Error::internal)?;
        }
        Ok(name)
    }
}

/// Queues a command that is already prepared, with its parameter.
pub(crate) fn push_prepared(
    statements: &StatementCache,
    (text, value): (&str, &str),
    out: &mut BytesMut,
) -> Option<()> {
    push_command(statements.prepared_internal(text)?, Some(value), out).ok()
}

fn push_command(name: &str, value: Option<&str>, out: &mut BytesMut) -> Result<(), Error> {
    let encode = |value: &str, out: &mut BytesMut| {
        out.extend_from_slice(value.as_bytes());
        Ok(IsNull::No)
    };
    frontend::bind("", name, [], value, encode, [0], out)
        .map_err(|_| io::Error::other("a command that cannot be sent"))
        .and_then(|()| frontend::execute("", 0, out))
        .map_err(Error::internal)
}
