//! A connection in replication mode: commands by the simple protocol, then a stream.

use std::time::Duration;

use postgres_protocol::message::frontend;
use tidegate_changelog::{LogError, LogResult};
use tidegate_sql::{DatabaseName, RawRow};
use tokio::time::Instant;

use super::refusal;
use crate::config::Config;
use crate::connection::{Connection, StartupPins};
use crate::wire::channel::Halt;
use crate::wire::rejection::ServerError;
use crate::wire::tag;

/// A row of an answer, in text form.
pub(super) type TextRow = Vec<Option<String>>;

/// A walsender's session.
pub(super) struct Session {
    connection: Connection,
}

impl Session {
    /// Logs in for the changes of a database.
    pub(super) async fn open(config: &Config, database: &DatabaseName) -> LogResult<Self> {
        let pins = StartupPins {
            search_path: Some(String::new()),
            defaults: vec![("replication".to_owned(), "database".to_owned())],
            ..StartupPins::default()
        };
        let (role, password) = (&config.admin_role, config.admin_password.reveal());
        let opened = Connection::open(config, database.as_str(), role, password, &pins).await;
        let connection = opened.map_err(|error| refusal::of_connection(error, role))?;
        Ok(Self { connection })
    }

    /// The number of the server process, which no other has at the same time.
    pub(super) fn process(&self) -> i32 {
        self.connection.backend().process_id
    }

    /// Runs a command. When it takes longer than `limit` it is cancelled, so that no process
    /// waits on for nobody, and the session is of no use any more.
    pub(super) async fn run(&mut self, text: &str, limit: Duration) -> LogResult<Vec<TextRow>> {
        self.send(text)?;
        let deadline = Instant::now() + limit;
        let (mut rows, mut refused) = (Vec::new(), None);
        loop {
            match self.receive(Some(deadline)).await {
                Ok(tag::DATA_ROW) => rows.push(self.row()?),
                Ok(tag::ERROR_RESPONSE) => {
                    refused = Some(ServerError::read(self.connection.channel.inbound.body()));
                }
                Ok(tag::READY_FOR_QUERY) => break,
                Ok(_) => {}
                Err(Halt::Deadline) => {
                    self.connection.cancel_running().await;
                    let what = format!("`{}`", text.split('(').next().unwrap_or_default());
                    return Err(LogError::TimedOut { what, limit });
                }
                Err(Halt::Io(error)) => return Err(LogError::Unavailable(Box::new(error))),
            }
        }
        match refused {
            Some(error) => Err(refusal::of_command(error.rejection, limit)),
            None => Ok(rows),
        }
    }

    /// Runs a command that starts a stream, and gives the connection away.
    pub(super) async fn start(mut self, text: &str, limit: Duration) -> LogResult<Connection> {
        self.send(text)?;
        let deadline = Instant::now() + limit;
        loop {
            match self.receive(Some(deadline)).await {
                Ok(tag::COPY_BOTH_RESPONSE) => return Ok(self.connection),
                Ok(tag::ERROR_RESPONSE) => {
                    let error = ServerError::read(self.connection.channel.inbound.body());
                    return Err(refusal::of_command(error.rejection, limit));
                }
                Ok(_) => {}
                Err(Halt::Deadline) => {
                    let what = "START_REPLICATION".to_owned();
                    return Err(LogError::TimedOut { what, limit });
                }
                Err(Halt::Io(error)) => return Err(LogError::Unavailable(Box::new(error))),
            }
        }
    }

    fn send(&mut self, text: &str) -> LogResult<()> {
        frontend::query(text, &mut self.connection.channel.outbound)
            .map_err(|error| LogError::Internal(Box::new(error)))
    }

    async fn receive(&mut self, deadline: Option<Instant>) -> Result<u8, Halt> {
        self.connection.channel.next(deadline).await
    }

    fn row(&self) -> LogResult<TextRow> {
        let wrong = || super::unreadable("a row of a replication command");
        let body = self.connection.channel.inbound.body();
        let (count, values) = body.split_first_chunk::<2>().ok_or_else(wrong)?;
        let row = RawRow::new(u16::from_be_bytes(*count).into(), values).ok_or_else(wrong)?;
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        Ok(row.values().map(|value| value.map(text)).collect())
    }
}
