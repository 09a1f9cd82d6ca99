//! Commands of our own that stay prepared: reading them again costs more than running them.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;

use super::cache::StatementCache;
use crate::connection::Connection;

impl Connection {
    /// Has commands prepared that the session does not know yet, each when it is queued or here.
    /// Nothing that can fail may stand between a Parse and the Sync in front of it.
    pub(super) fn prepare_own(&mut self, commands: &[&'static str]) -> Result<(), Error> {
        for text in commands {
            self.prepared_own(text)?;
        }
        Ok(())
    }

    /// Queues a command that takes and returns nothing.
    pub(super) fn push_own(&mut self, text: &'static str) -> Result<(), Error> {
        let name = self.prepared_own(text)?;
        push_command(&name, None, &mut self.channel.outbound)
    }

    /// Queues a command with a parameter in text form.
    pub(super) fn push_own_with(&mut self, text: &'static str, value: &str) -> Result<(), Error> {
        let name = self.prepared_own(text)?;
        push_command(&name, Some(value), &mut self.channel.outbound)
    }

    /// The name of a command, whose Parse is queued if it is not prepared, behind a Close for each
    /// statement that nobody needs.
    fn prepared_own(&mut self, text: &'static str) -> Result<String, Error> {
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

/// Queues a command that is prepared, with its parameter if it has one.
pub(super) fn push_prepared(
    statements: &StatementCache,
    (text, value): (&str, &str),
    out: &mut BytesMut,
) -> Option<()> {
    push_command(statements.prepared_own(text)?, Some(value), out).ok()
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
