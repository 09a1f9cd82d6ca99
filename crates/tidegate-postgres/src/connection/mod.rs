//! A connection to PostgreSQL. It has no task of its own: the task that uses the connection does
//! its I/O.

mod prefix;
mod recover;
mod reset;
mod state;

use std::io::ErrorKind;

use tokio::time::Instant;

pub(crate) use prefix::{Prefix, SNAPSHOT, push_prepared_switch};
pub(crate) use state::{SessionState, TransactionStatus};

use tidegate_sql::{Error, InputError};
use tidegate_wire::body::{self, FieldDescription};
use tidegate_wire::channel::{Channel, MAX_MESSAGE, ReadError};
use tidegate_wire::{
    Backend, Canceller, Config, ConnectError, StartupParameters, log_in, outage, tag,
};

use crate::statement::{SideEffects, StatementCache};

/// The SQLSTATE of the notice by which the event trigger reports a changed definition to the
/// session that changed it (`announce_function.sql` of `tidegate-service`).
const DDL_NOTICE: &str = "TGDEF";

/// A connection that logged in as one role.
pub struct Connection {
    pub(crate) channel: Channel,
    pub(crate) session: SessionState,
    canceller: Canceller,
    /// Whether the server was in recovery at the login. Such a server refuses writes.
    in_recovery: bool,
    server_version: u32,
}

/// The state of a connection. It says what has to happen before the connection can be checked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// Idle, with the session in its initial state.
    Idle,
    /// A reset has been sent in full, and only its responses may be outstanding. The connection can
    /// be returned to the pool. Its next user calls [`Connection::recover`], which then takes only
    /// microseconds.
    Resetting,
    /// A statement may still run, or a reset is due. Call [`Connection::recover`] in the background
    /// before returning the connection to the pool.
    NeedsRecovery,
    /// Unusable. Drop it.
    Closed,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The buffers are left out, because they hold data of callers.
        f.debug_struct("Connection")
            .field("backend", self.backend())
            .field("condition", &self.state())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    ///
    /// A [`ConnectError`]; its [`ConnectError::fault`] is the class of the error.
    pub async fn open(
        config: &Config,
        database: &str,
        role: &str,
        password: &str,
        startup: &StartupParameters,
    ) -> Result<Self, ConnectError> {
        let opened = log_in(config, database, role, password, startup).await?;
        let statements = StatementCache::new(config.statements_per_connection);
        Ok(Self {
            channel: opened.channel,
            session: SessionState::new(startup.search_path(), statements),
            canceller: opened.canceller,
            in_recovery: opened.in_recovery,
            server_version: startup.server_version,
        })
    }

    /// The backend process of the connection.
    pub fn backend(&self) -> &Backend {
        self.canceller.backend()
    }

    /// Whether PostgreSQL may still run a statement of the connection.
    pub(crate) fn may_run(&self) -> bool {
        self.session.may_run()
    }

    /// Sends Terminate and waits until PostgreSQL closes the connection. PostgreSQL reads Terminate
    /// only after a running statement has ended. An unusable connection is closed without
    /// Terminate.
    pub async fn close(mut self) {
        let closed = if self.state() != ConnectionState::Closed {
            postgres_protocol::message::frontend::terminate(&mut self.channel.outbound);
            self.channel.close().await
        } else if self.may_run() {
            self.channel.abandon().await
        } else {
            return;
        };
        if let Err(error) = closed {
            tracing::debug!(%error, "connection ended before Terminate was sent");
        }
    }

    /// Sends a cancel request, without waiting for the statement to end.
    pub(crate) async fn cancel_running(&self) {
        if let Err(error) = self.canceller.cancel().await {
            let backend = self.backend().process_id;
            tracing::warn!(backend, %error, "cancel request failed");
        }
    }

    /// Whether the server was in recovery at the login. A server cannot get into recovery without
    /// ending its connections.
    pub(crate) fn is_in_recovery(&self) -> bool {
        self.in_recovery
    }

    /// Whether the connection leads to the server that was most recently found to be the primary.
    pub(crate) fn is_current(&self) -> bool {
        self.canceller.is_current()
    }

    /// `server_version_num`; 0 if unknown.
    pub(crate) fn server_version(&self) -> u32 {
        self.server_version
    }

    /// The state of the connection. Never blocks.
    pub fn state(&self) -> ConnectionState {
        self.session.state(self.channel.outbound.is_empty())
    }

    /// Whether the connection is still open. Marks an idle connection as unusable if data has
    /// arrived on it. Never blocks.
    pub fn is_open(&mut self) -> bool {
        match self.state() {
            ConnectionState::Closed => return false,
            // Data that has arrived may be an outstanding response, so it does not make the
            // connection unusable. If the connection has ended, the next read reports it.
            ConnectionState::Resetting | ConnectionState::NeedsRecovery => return true,
            ConnectionState::Idle => {}
        }
        // The data may be a notice, a changed setting after a reload of the configuration, or the
        // end of the session. The connection is closed in all three cases, because opening a new
        // one is simpler than distinguishing them.
        if self.channel.is_readable() {
            self.mark_closed();
        }
        !self.session.is_closed()
    }

    /// Records that another OAuth session of the same user uses the connection next. If a statement
    /// has run since the most recent reset, the state becomes [`ConnectionState::NeedsRecovery`].
    pub fn change_session(&mut self) {
        if self.session.side_effects() > SideEffects::None {
            self.session.note_side_effects(SideEffects::Session);
        }
    }

    /// Whether the connection must be reset before its next use even if only pure reads ran on it.
    /// The result is `true` if the connection seals claims of members and its most recent reset is
    /// at least a second ago. This node may have read a new definition too late. A read that ran
    /// the new code then counted as pure.
    pub(crate) fn is_periodic_reset_due(&self) -> bool {
        self.session.is_periodic_reset_due(Instant::now())
    }

    /// If [`Self::is_periodic_reset_due`] returns `true`, the state becomes
    /// [`ConnectionState::NeedsRecovery`].
    pub(crate) fn request_periodic_reset_if_due(&mut self) {
        if self.is_periodic_reset_due() {
            self.session.note_side_effects(SideEffects::Session);
        }
    }

    /// Starts a pipeline. The messages that are queued next have no Sync until [`Self::sync`].
    pub(crate) fn begin_pipeline(&mut self) {
        self.session.open_pipeline();
    }

    /// Ends the pipeline with a Sync, at which PostgreSQL ends the implicit transaction.
    pub(crate) fn sync(&mut self) {
        postgres_protocol::message::frontend::sync(&mut self.channel.outbound);
        self.session.expect_responses(1);
    }

    /// Records that the responses of `count` pipelines of the multiplexer, each with its Sync, are
    /// outstanding.
    pub(crate) fn expect_responses(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.session.note_side_effects(SideEffects::Reads);
        self.session.expect_responses(count);
    }

    /// Ends the pipeline so that PostgreSQL undoes it: queues a message that fails, then the Sync.
    pub(crate) fn abort(&mut self) {
        let failing = postgres_protocol::message::frontend::describe(
            b'S',
            "tidegate gives this up",
            &mut self.channel.outbound,
        );
        failing.expect("the name has no zero byte");
        self.sync();
    }

    /// Discards a pipeline that has not been sent.
    pub(crate) fn withdraw(&mut self) {
        self.channel.outbound.clear();
        self.session.withdraw_pipeline();
        self.session.prefix.end();
    }

    /// Queues one of Tidegate's own commands with the simple query protocol.
    pub(crate) fn push_simple(&mut self, text: &'static str) {
        postgres_protocol::message::frontend::query(text, &mut self.channel.outbound)
            .expect("our own statements hold no zero byte");
        self.session.expect_responses(1);
    }

    /// Processes the current message as `ReadyForQuery`.
    pub(crate) fn ready_for_query(&mut self) -> Result<(), Error> {
        let transaction = match self.channel.inbound.body() {
            b"I" => TransactionStatus::Idle,
            b"T" => TransactionStatus::Open,
            b"E" => TransactionStatus::Failed,
            _ => return Err(self.protocol_error("a transaction status that does not exist")),
        };
        self.session.ready_received(transaction);
        if self.session.prefix.end() {
            // A command of the prefix has failed. It may have failed at its Parse, so it is unknown
            // which internal commands are prepared.
            self.forget_internal();
            // The command that seals claims may have failed. It is a prepared statement, and code
            // that ran for a caller may have replaced it. The replacement could read the token that
            // authenticates sealed claims. This token is valid until the backend ends, so the
            // connection is closed.
            if self.session.is_sealing() {
                self.mark_closed();
            }
        }
        self.channel.inbound.shrink();
        Ok(())
    }

    /// Marks the connection as unusable.
    pub(crate) fn mark_closed(&mut self) {
        self.session.close();
    }

    /// Closes the connection because of a message that breaks the protocol; returns the error.
    pub(crate) fn protocol_error(&mut self, what: &str) -> Error {
        self.mark_closed();
        Error::internal(ConnectError::Protocol(what.to_owned()))
    }

    /// The columns that the current message describes. The message must be a `RowDescription` or a
    /// `NoData`.
    pub(crate) fn fields(&mut self, tag: u8) -> Result<Vec<FieldDescription>, Error> {
        let fields = match tag {
            tag::NO_DATA => Some(Vec::new()),
            _ => body::row_description(self.channel.inbound.body()),
        };
        fields.ok_or_else(|| self.protocol_error("an unreadable description"))
    }

    /// Closes the connection because of a message that must not arrive now; returns the error.
    pub(crate) fn unexpected(&mut self, tag: u8) -> Error {
        let name = char::from(tag).escape_default();
        self.protocol_error(&format!("an unexpected message `{name}`"))
    }

    /// Closes the connection, because the caller changed a setting on which all later statements
    /// depend, such as `client_encoding`. Returns the error for the caller. The statement may have
    /// been committed all the same, because PostgreSQL reports the change only afterwards.
    fn refuse_setting(&mut self, reason: &'static str) -> Error {
        self.mark_closed();
        let keyword = "SET";
        InputError::StatementNotAllowed { keyword, reason }.into()
    }

    /// Turns the failure of a read into an error. Every failure except a passed deadline makes the
    /// connection unusable.
    pub(crate) fn read_error(&mut self, halt: ReadError) -> Error {
        match halt {
            ReadError::Deadline => Error::Deadline,
            ReadError::Io(error) => {
                self.mark_closed();
                match error.kind() {
                    ErrorKind::FileTooLarge => Error::ResultTooLarge(MAX_MESSAGE as u64),
                    ErrorKind::InvalidData => Error::internal(error),
                    _ => outage(error),
                }
            }
        }
    }

    /// Waits for the next message for which [`Self::handle_asynchronous`] returns `false`, and
    /// returns its tag.
    pub(crate) async fn next(&mut self, deadline: Option<Instant>) -> Result<u8, Error> {
        loop {
            match self.channel.next(deadline).await {
                Ok(tag) if self.handle_asynchronous(tag)? => {}
                Ok(tag) => return Ok(tag),
                Err(halt) => return Err(self.read_error(halt)),
            }
        }
    }

    /// Consumes the current message and returns `true` if the message does not belong to the
    /// statement. PostgreSQL may send notices, notifications and changed settings at any time
    /// ("Asynchronous Operations"). Responses to the commands that begin the pipeline do not belong
    /// to the statement either.
    pub(crate) fn handle_asynchronous(&mut self, tag: u8) -> Result<bool, Error> {
        match tag {
            tag::NOTICE_RESPONSE => {
                if body::has_sqlstate(self.channel.inbound.body(), DDL_NOTICE) {
                    self.session.note_ddl();
                }
                Ok(true)
            }
            tag::NOTIFICATION_RESPONSE => Ok(true),
            tag::PARAMETER_STATUS => {
                // A reset restores settings, and PostgreSQL reports them as changes. Such a report
                // is no side effect of a statement.
                let message = self.channel.inbound.body();
                if self.session.is_resetting() || body::is_role_status(message) {
                    return Ok(true);
                }
                self.session.note_side_effects(SideEffects::Session);
                let status = body::parameter_status(self.channel.inbound.body());
                match status {
                    // With another encoding PostgreSQL would misread the text that the service
                    // sends, so the connection is closed.
                    Some(("client_encoding", value)) if value != "UTF8" => {
                        Err(self.refuse_setting("client_encoding must stay UTF8; what else the statement did may have been kept"))
                    }
                    Some(("standard_conforming_strings", "off")) => {
                        Err(self.refuse_setting("standard_conforming_strings must stay on; what else the statement did may have been kept"))
                    }
                    Some(_) => Ok(true),
                    None => Err(self.protocol_error("an unreadable ParameterStatus")),
                }
            }
            tag::COPY_IN_RESPONSE | tag::COPY_OUT_RESPONSE | tag::COPY_BOTH_RESPONSE => {
                Err(self.protocol_error("COPY was started"))
            }
            _ => {
                let body = self.channel.inbound.body();
                Ok(self.session.prefix.consume(tag, body))
            }
        }
    }
}
