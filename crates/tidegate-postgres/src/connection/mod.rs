//! One connection to PostgreSQL, owned by whoever uses it: no channel, no task of its own.

mod settle;
mod state;

use std::io::ErrorKind;

use tokio::time::Instant;

pub(crate) use state::{SessionState, TransactionStatus};

use tidegate_sql::{Error, InputError};
use tidegate_wire::channel::{Channel, Halt};
use tidegate_wire::inbound::LONGEST;
use tidegate_wire::{Backend, Canceller, Config, ConnectError, StartupPins, log_in, outage, tag};

use crate::session::cache::StatementCache;
use crate::session::reset::Residue;

/// The SQLSTATE of the notice by which the event trigger tells the session that ran it
/// (`announce_function.sql` of `tidegate-service`).
const REDEFINED: &str = "TGDEF";

/// A connection that logged in as one role.
pub struct Connection {
    pub(crate) channel: Channel,
    /// What is known of the session at the other end.
    pub(crate) session: SessionState,
    canceller: Canceller,
    server_version: u32,
}

/// Whether a connection can be lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Idle, in its initial session state.
    Ready,
    /// The reset has been sent and nothing else is open: put it back; its next user calls
    /// [`Connection::settle`] first, which then waits for microseconds at most.
    Resetting,
    /// A statement may still run, or a reset is due: [`Connection::settle`] in the background
    /// before it is put back.
    Unsettled,
    /// Nothing can be done with it any more: drop it.
    Closed,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The buffers hold what callers read and write.
        f.debug_struct("Connection")
            .field("backend", self.backend())
            .field("condition", &self.condition())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`ConnectError::fault`] sorts them.
    pub async fn open(
        config: &Config,
        database: &str,
        role: &str,
        password: &str,
        pins: &StartupPins,
    ) -> Result<Self, ConnectError> {
        let (channel, backend) = log_in(config, database, role, password, pins).await?;
        let statements = StatementCache::new(config.statements_per_connection);
        Ok(Self {
            channel,
            session: SessionState::new(pins.search_path(), statements),
            canceller: Canceller::new(config, backend),
            server_version: pins.server_version,
        })
    }

    /// The server process behind the connection.
    pub fn backend(&self) -> &Backend {
        self.canceller.backend()
    }

    /// Whether PostgreSQL may still work for the connection.
    pub(crate) fn may_run(&self) -> bool {
        self.session.may_run()
    }

    /// Says goodbye and waits until PostgreSQL has let the connection go, which a statement that
    /// cannot be interrupted can delay.
    pub async fn close(mut self) {
        let closed = if self.condition() != Condition::Closed {
            postgres_protocol::message::frontend::terminate(&mut self.channel.outbound);
            self.channel.close().await
        } else if self.may_run() {
            self.channel.abandon().await
        } else {
            return;
        };
        if let Err(error) = closed {
            tracing::debug!(%error, "PostgreSQL was gone before the goodbye");
        }
    }

    /// Cancels what the connection runs, without waiting for its end.
    pub(crate) async fn cancel_running(&self) {
        if let Err(error) = self.canceller.cancel().await {
            tracing::warn!(%error, "cancel request failed");
        }
    }

    /// `server_version_num` as the opener gave it; 0 when it was not known.
    pub(crate) fn server_version(&self) -> u32 {
        self.server_version
    }

    /// Whether the connection can be lent. Never blocks.
    pub fn condition(&self) -> Condition {
        self.session.condition(self.channel.outbound.is_empty())
    }

    /// Whether PostgreSQL still holds an idle connection. Never blocks.
    pub fn is_open(&mut self) -> bool {
        match self.condition() {
            Condition::Closed => return false,
            // The answer of the reset is expected, an end of the stream shows when it is read.
            Condition::Resetting | Condition::Unsettled => return true,
            Condition::Ready => {}
        }
        // What an idle session receives is a notice, a setting reloaded by the administrator, or the
        // announcement of its end. A new connection costs less than telling them apart.
        if self.channel.is_readable() {
            self.give_up();
        }
        !self.session.is_lost()
    }

    /// Tells that another session of the same user takes over: if anything ran since the last
    /// reset, the connection is [`Condition::Unsettled`].
    pub fn change_session(&mut self) {
        if self.session.residue() > Residue::None {
            self.session.leave(Residue::Session);
        }
    }

    /// Counts messages that are about to be queued without a Sync behind them.
    pub(crate) fn begin_pipeline(&mut self) {
        self.session.open_pipeline();
    }

    /// Ends the pipeline: PostgreSQL closes the implicit transaction and says `ReadyForQuery`.
    pub(crate) fn sync(&mut self) {
        postgres_protocol::message::frontend::sync(&mut self.channel.outbound);
        self.session.expect_answers(1);
    }

    /// Counts the answers of pipelines that others have put together, each with its Sync.
    pub(crate) fn expect_answers(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.session.leave(Residue::Reads);
        self.session.expect_answers(count);
    }

    /// Ends the pipeline so that nothing of it stays: a message that must fail goes in front.
    pub(crate) fn abort(&mut self) {
        let failing = postgres_protocol::message::frontend::describe(
            b'S',
            "tidegate gives this up",
            &mut self.channel.outbound,
        );
        failing.expect("the name has no zero byte");
        self.sync();
    }

    /// Takes back a pipeline of which nothing has been sent.
    pub(crate) fn withdraw(&mut self) {
        self.channel.outbound.clear();
        self.session.withdraw_pipeline();
        self.session.prefix.end();
    }

    /// Queues statements of our own by the simple protocol.
    pub(crate) fn simple(&mut self, text: &'static str) {
        postgres_protocol::message::frontend::query(text, &mut self.channel.outbound)
            .expect("our own statements hold no zero byte");
        self.session.expect_answers(1);
    }

    /// Takes the current message as `ReadyForQuery`.
    pub(crate) fn ready_for_query(&mut self) -> Result<(), Error> {
        let transaction = match self.channel.inbound.body() {
            b"I" => TransactionStatus::Idle,
            b"T" => TransactionStatus::Open,
            b"E" => TransactionStatus::Failed,
            _ => return Err(self.breach("a transaction status that does not exist")),
        };
        self.session.answered(transaction);
        if self.session.prefix.end() {
            // Whether the error came of its Parse is not known.
            self.session.statements.forget_own();
        }
        self.channel.inbound.shrink();
        Ok(())
    }

    /// Never to be used again.
    pub(crate) fn give_up(&mut self) {
        self.session.lose();
    }

    /// The error of a message that cannot be.
    pub(crate) fn breach(&mut self, what: &str) -> Error {
        self.give_up();
        Error::internal(ConnectError::Protocol(what.to_owned()))
    }

    /// The error of a caller who changed a setting that every text depends on. What the statement
    /// did besides may have been committed before PostgreSQL tells of the setting.
    fn changed(&mut self, reason: &'static str) -> Error {
        self.give_up();
        let keyword = "SET";
        InputError::StatementNotAllowed { keyword, reason }.into()
    }

    /// The error of a stream that stopped.
    pub(crate) fn halted(&mut self, halt: Halt) -> Error {
        match halt {
            Halt::Deadline => Error::Deadline,
            Halt::Io(error) => {
                self.give_up();
                match error.kind() {
                    ErrorKind::FileTooLarge => Error::ResultTooLarge(LONGEST as u64),
                    ErrorKind::InvalidData => Error::internal(error),
                    _ => outage(error),
                }
            }
        }
    }

    /// The next message, without those that may come at any time.
    pub(crate) async fn next(&mut self, deadline: Option<Instant>) -> Result<u8, Error> {
        loop {
            match self.channel.next(deadline).await {
                Ok(tag) if self.is_aside(tag)? => {}
                Ok(tag) => return Ok(tag),
                Err(halt) => return Err(self.halted(halt)),
            }
        }
    }

    /// Takes a message that is not the statement's: notices, notifications and changed settings,
    /// which PostgreSQL may send at any time ("Asynchronous Operations"), and the answers of the
    /// commands in front of the statement.
    pub(crate) fn is_aside(&mut self, tag: u8) -> Result<bool, Error> {
        match tag {
            tag::NOTICE_RESPONSE => {
                if tidegate_wire::body::has_sqlstate(self.channel.inbound.body(), REDEFINED) {
                    self.session.note_redefinition();
                }
                Ok(true)
            }
            tag::NOTIFICATION_RESPONSE => Ok(true),
            tag::PARAMETER_STATUS => {
                let body = self.channel.inbound.body();
                // A reset changes settings back.
                if self.session.is_resetting() || tidegate_wire::body::tells_of_role(body) {
                    return Ok(true);
                }
                self.session.leave(Residue::Session);
                let status = tidegate_wire::body::parameter_status(self.channel.inbound.body());
                match status {
                    // Texts would be read differently from how they are written.
                    Some(("client_encoding", value)) if value != "UTF8" => {
                        Err(self.changed("client_encoding must stay UTF8; what else the statement did may have been kept"))
                    }
                    Some(("standard_conforming_strings", "off")) => {
                        Err(self.changed("standard_conforming_strings must stay on; what else the statement did may have been kept"))
                    }
                    Some(_) => Ok(true),
                    None => Err(self.breach("an unreadable ParameterStatus")),
                }
            }
            tag::COPY_IN_RESPONSE | tag::COPY_OUT_RESPONSE | tag::COPY_BOTH_RESPONSE => {
                Err(self.breach("COPY was started"))
            }
            _ => Ok(self.take_prefix(tag)),
        }
    }
}
