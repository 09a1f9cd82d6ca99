//! Commands of our own that stay prepared: reading them again costs more than running them.

use std::io;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use tidegate_sql::Error;

use crate::connection::Connection;

impl Connection {
    /// Has commands prepared that the session does not know yet. Nothing that can fail may stand
    /// between this and the Sync in front of it.
    pub(super) fn prepare_own(&mut self, commands: &[&'static str]) -> Result<(), Error> {
        for text in commands {
            let (name, is_new) = self.session.statements.own(text);
            if is_new {
                let parsed = frontend::parse(&name, text, [], &mut self.channel.outbound);
                parsed.map_err(Error::internal)?;
            }
        }
        Ok(())
    }

    /// Queues a command that was prepared, which takes and returns nothing.
    pub(super) fn push_own(&mut self, text: &'static str) -> Result<(), Error> {
        let (name, _) = self.session.statements.own(text);
        let out = &mut self.channel.outbound;
        let nothing = |(): (), _: &mut BytesMut| Ok(IsNull::Yes);
        frontend::bind("", &name, [], [], nothing, [], out)
            .map_err(|_| io::Error::other("an empty Bind"))
            .and_then(|()| frontend::execute("", 0, out))
            .map_err(Error::internal)
    }
}
