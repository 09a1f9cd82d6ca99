//! A replication connection. It first runs commands by the simple query protocol, then a stream.

use std::time::Duration;

use postgres_protocol::message::frontend;
use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::DatabaseName;
use tidegate_values::RawRow;
use tidegate_wire::channel::{Channel, ReadError};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::{Canceller, Config, ConnectError, StartupParameters, log_in, tag};
use tokio::time::Instant;
use tracing::warn;

use crate::error;

/// The time limit for a command that need not wait for other sessions.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum time for which the server may leave sent data unacknowledged. After the server has
/// disappeared, the status updates of a stream are such data. Without this limit, they would keep
/// the connection open for a quarter of an hour.
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// A row of a result, in text form.
pub(super) type TextRow = Vec<Option<String>>;

/// A session in replication mode, which a walsender process serves.
pub(super) struct ReplicationSession {
    channel: Channel,
    canceller: Canceller,
}

impl ReplicationSession {
    /// Logs in to a database in replication mode.
    pub(super) async fn open(config: &Config, database: &DatabaseName) -> LogResult<Self> {
        let startup = StartupParameters {
            search_path: Some(String::new()),
            defaults: vec![("replication".to_owned(), "database".to_owned())],
            ..StartupParameters::default()
        };
        let (role, password) = (&config.admin_role, config.admin_password.reveal());
        let opened = log_in(config, database.as_str(), role, password, &startup).await;
        let opened = opened.map_err(|error| error::of_connection(error, role))?;
        if opened.in_recovery {
            return Err(LogError::Unavailable(Box::new(ConnectError::InRecovery)));
        }
        let limited = opened.channel.stream().limit_unacknowledged(UNACKNOWLEDGED);
        limited.map_err(|error| LogError::Unavailable(Box::new(error)))?;
        Ok(Self {
            channel: opened.channel,
            canceller: opened.canceller,
        })
    }

    /// The id of the backend process.
    pub(super) fn process(&self) -> i32 {
        self.canceller.backend().process_id
    }

    /// Runs a command and returns its rows. If the command takes longer than `limit`, sends a
    /// cancel request, so that the backend does not keep waiting. The session cannot be used after
    /// the cancel request.
    pub(super) async fn run(&mut self, text: &str, limit: Duration) -> LogResult<Vec<TextRow>> {
        self.send(text)?;
        let deadline = Instant::now() + limit;
        let (mut rows, mut refused) = (Vec::new(), None);
        loop {
            match self.receive(Some(deadline)).await {
                Ok(tag::DATA_ROW) => rows.push(self.row()?),
                Ok(tag::ERROR_RESPONSE) => {
                    refused = Some(ServerError::read(self.channel.inbound.body()));
                }
                Ok(tag::READY_FOR_QUERY) => break,
                Ok(_) => {}
                Err(ReadError::Deadline) => {
                    if let Err(error) = self.canceller.cancel().await {
                        warn!(backend = self.process(), %error, "cancel request failed");
                    }
                    let what = format!("`{}`", text.split('(').next().unwrap_or_default());
                    return Err(LogError::TimedOut { what, limit });
                }
                Err(ReadError::Io(error)) => return Err(LogError::Unavailable(Box::new(error))),
            }
        }
        match refused {
            Some(error) => Err(error::of_command(error.rejection, limit)),
            None => Ok(rows),
        }
    }

    /// Runs a command that starts a stream, and returns the connection.
    pub(super) async fn start(mut self, text: &str, limit: Duration) -> LogResult<Channel> {
        self.send(text)?;
        let deadline = Instant::now() + limit;
        loop {
            match self.receive(Some(deadline)).await {
                Ok(tag::COPY_BOTH_RESPONSE) => return Ok(self.channel),
                Ok(tag::ERROR_RESPONSE) => {
                    let error = ServerError::read(self.channel.inbound.body());
                    return Err(error::of_command(error.rejection, limit));
                }
                Ok(_) => {}
                Err(ReadError::Deadline) => {
                    let what = "START_REPLICATION".to_owned();
                    return Err(LogError::TimedOut { what, limit });
                }
                Err(ReadError::Io(error)) => return Err(LogError::Unavailable(Box::new(error))),
            }
        }
    }

    fn send(&mut self, text: &str) -> LogResult<()> {
        frontend::query(text, &mut self.channel.outbound)
            .map_err(|error| LogError::Internal(Box::new(error)))
    }

    async fn receive(&mut self, deadline: Option<Instant>) -> Result<u8, ReadError> {
        self.channel.next(deadline).await
    }

    fn row(&self) -> LogResult<TextRow> {
        let wrong = || super::unreadable("a row of a replication command");
        let body = self.channel.inbound.body();
        let (count, values) = body.split_first_chunk::<2>().ok_or_else(wrong)?;
        let row = RawRow::new(u16::from_be_bytes(*count).into(), values).ok_or_else(wrong)?;
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        Ok(row.values().map(|value| value.map(text)).collect())
    }
}
