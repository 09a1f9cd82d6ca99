//! A running stream (PostgreSQL, "Streaming Replication Protocol").

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{BufMut, Bytes};
use tidegate_changelog::{Lineage, LogError, LogMessage, LogPosition, LogResult, LogStream};
use tidegate_wire::channel::{Channel, ReadError};
use tidegate_wire::server_error::ServerError;
use tidegate_wire::tag;
use tokio::time::Instant;

use super::missing_log::SlotLog;
use crate::error;

/// The interval at which the stream reports the confirmed position to PostgreSQL. It is a sixth of
/// the default of `wal_sender_timeout`.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// The interval at which the stream is read while transactions are dense. PostgreSQL sends each
/// message separately, and each would wake the task. With several thousand transactions a second
/// the wake-ups would cost more than the changes themselves. If the stream is read for all nodes,
/// most reads also become a NATS message.
const GATHER_INTERVAL: Duration = Duration::from_millis(1);
/// Transactions count as dense if they arrive within this time after the last read, or if one read
/// returns at least this number of transactions.
const DENSE: (Duration, usize) = (Duration::from_micros(300), 3);
/// A server counts as shutting down if it asks for a report this many times in a row, each time
/// within this duration after the previous request.
const SHUTDOWN_REQUESTS: (Duration, u32) = (Duration::from_millis(500), 3);
/// The maximum number of messages that one read returns.
const BATCH: usize = 1024;
/// The length of a status update in bytes.
const STATUS_LENGTH: u8 = 34;
/// The SQLSTATE `undefined_file`: a file of the log is missing.
const NO_FILE: &str = "58P01";

/// A stream of pgoutput messages.
pub(super) struct Stream {
    channel: Channel,
    lineage: Lineage,
    start: LogPosition,
    confirmed: LogPosition,
    report_at: Instant,
    /// The time at which data most recently arrived.
    received_at: Instant,
    /// The time until which nothing is read, so that the next read returns more messages. `None` if
    /// the next message is read when it arrives.
    pause_until: Option<Instant>,
    /// Whether PostgreSQL has asked for a report. The report is sent at the next read, after the
    /// received messages were processed and confirmed. A server that shuts down waits until
    /// everything is confirmed.
    owes_report: bool,
    /// The position up to which everything was received; `None` inside a transaction.
    complete: Option<LogPosition>,
    /// Whether this stream is read for all nodes. Such a stream confirms positions late, so that
    /// the slot keeps the log of the retention window.
    is_for_all_nodes: bool,
    /// Used to record that the log of the retention slot is missing. The stream reads this slot or
    /// a copy of it. `None` if there is no retention slot.
    slot_log: Option<SlotLog>,
    /// The time of PostgreSQL's most recent request for a report, and the number of requests in the
    /// current series. In a series, each request comes within the duration of
    /// [`SHUTDOWN_REQUESTS`] after the previous one.
    report_requests: (Instant, u32),
}

impl Stream {
    /// Takes over a connection on which `START_REPLICATION` has succeeded.
    pub(super) fn new(channel: Channel, lineage: Lineage, start: LogPosition) -> Self {
        Self {
            channel,
            lineage,
            start,
            confirmed: start,
            report_at: Instant::now() + REPORT_INTERVAL,
            received_at: Instant::now(),
            pause_until: None,
            owes_report: false,
            complete: Some(start),
            is_for_all_nodes: false,
            slot_log: None,
            report_requests: (Instant::now(), 0),
        }
    }

    /// Marks the stream as read for all nodes. A server that shuts down waits until everything is
    /// confirmed. Such a stream confirms late, so it ends when the server shuts down.
    pub(super) fn for_all_nodes(mut self) -> Self {
        self.is_for_all_nodes = true;
        self
    }

    /// Makes the stream call [`SlotLog::record_missing`] if PostgreSQL reports that a file of the
    /// slot's log is missing.
    pub(super) fn of_slot(mut self, log: SlotLog) -> Self {
        self.slot_log = Some(log);
        self
    }

    /// Moves the messages that have arrived completely to the batch. Returns whether the batch is
    /// full.
    fn drain(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<bool> {
        while batch.len() < BATCH {
            let advanced = self.channel.inbound.advance();
            let Some(tag) = advanced.map_err(outage)? else {
                return Ok(false);
            };
            self.take(tag, batch)?;
        }
        Ok(true)
    }

    fn take(&mut self, tag: u8, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let body = self.channel.inbound.body();
        match (tag, body.split_first()) {
            (tag::COPY_DATA, Some((b'w', message))) => {
                // The header has two WAL positions and the server's clock. The pgoutput message
                // follows.
                let change = message.get(24..).ok_or_else(truncated)?;
                self.complete = complete_after(self.complete, change);
                batch.push(LogMessage::Change(Bytes::copy_from_slice(change)));
            }
            (tag::COPY_DATA, Some((b'k', message))) => {
                let (end, rest) = message.split_first_chunk::<8>().ok_or_else(truncated)?;
                let wants_report = rest.get(8) == Some(&1);
                let end = LogPosition(u64::from_be_bytes(*end));
                batch.push(LogMessage::Reached(end));
                self.complete = self.complete.map(|complete| complete.max(end));
                self.owes_report |= wants_report;
            }
            (tag::ERROR_RESPONSE, _) => {
                let error = ServerError::read(body);
                if let Some(log) = &self.slot_log
                    && error.rejection.sqlstate == NO_FILE
                {
                    log.record_missing();
                }
                return Err(error::of_command(error.rejection, Duration::ZERO));
            }
            (tag::NOTICE_RESPONSE | tag::PARAMETER_STATUS, _) => {}
            _ => return Err(LogError::Unavailable("the stream of changes ended".into())),
        }
        Ok(())
    }

    /// Returns an error if the server is shutting down and this stream confirms late. A server that
    /// shuts down asks for the next report as soon as it has received one. Any other server asks
    /// only after half of `wal_sender_timeout`.
    fn end_if_shutting_down(&mut self) -> LogResult<()> {
        let (last, count) = self.report_requests;
        let (soon, most) = SHUTDOWN_REQUESTS;
        let count = if last.elapsed() < soon { count + 1 } else { 1 };
        self.report_requests = (Instant::now(), count);
        if self.is_for_all_nodes && count >= most {
            return Err(LogError::Unavailable("PostgreSQL is shutting down".into()));
        }
        Ok(())
    }

    /// Queues a status update. With `reply`, the update asks PostgreSQL to respond immediately.
    fn report(&mut self, reply: bool) {
        let out = &mut self.channel.outbound;
        out.put_u8(tag::COPY_DATA);
        out.put_u32(4 + u32::from(STATUS_LENGTH));
        out.put_u8(b'r');
        // The server releases the log up to the flushed position. The written position has no such
        // effect, so it may be later.
        let written = self.complete.unwrap_or_default().max(self.confirmed);
        for position in [written, self.confirmed, self.confirmed] {
            out.put_u64(position.0);
        }
        // The field is the client's clock, which PostgreSQL only displays.
        out.put_u64(0);
        out.put_u8(reply.into());
        self.report_at = Instant::now() + REPORT_INTERVAL;
    }

    async fn receive(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let before = batch.len();
        let owed = std::mem::take(&mut self.owes_report);
        if owed {
            self.end_if_shutting_down()?;
            self.report(false);
        }
        self.channel.resume_reads().map_err(outage)?;
        loop {
            self.drain(batch)?;
            let now = Instant::now();
            if now >= self.report_at {
                self.report(false);
            }
            if batch.len() > before {
                let new = &batch[before..];
                let gathers = is_dense(new, now - self.received_at);
                self.pause_until = gathers.then_some(now + GATHER_INTERVAL);
                self.received_at = now;
                return Ok(());
            }
            if let Some(until) = self.pause_until.filter(|until| *until > now) {
                self.channel.pause(until).await.map_err(outage)?;
            }
            self.pause_until = None;
            match self.channel.exchange(Some(self.report_at)).await {
                Ok(()) | Err(ReadError::Deadline) => {}
                Err(ReadError::Io(error)) => return Err(outage(error)),
            }
        }
    }
}

#[async_trait]
impl LogStream for Stream {
    fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    fn start(&self) -> LogPosition {
        self.start
    }

    async fn next(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        self.receive(batch).await
    }

    fn confirm(&mut self, position: LogPosition) {
        self.confirmed = self.confirmed.max(position);
    }

    fn request_position(&mut self) {
        self.report(true);
    }
}

/// The new value of `Stream::complete` after the pgoutput message `change` was received. `complete`
/// is the old value.
fn complete_after(complete: Option<LogPosition>, change: &[u8]) -> Option<LogPosition> {
    match change.split_first() {
        Some((b'B', _)) => None,
        Some((b'C', commit)) => {
            // The flags and the position of the commit precede the end.
            let end = commit.get(9..)?.first_chunk::<8>()?;
            Some(LogPosition(u64::from_be_bytes(*end)))
        }
        _ => complete,
    }
}

/// Whether to pause reading, because more transactions will probably arrive soon. `since_last` is
/// the time between this read and the last. Never pauses inside a transaction, because PostgreSQL
/// may be waiting until this client reads more.
fn is_dense(messages: &[LogMessage], since_last: Duration) -> bool {
    let ends = messages.iter().filter(|message| is_end(message)).count();
    let (soon, many) = DENSE;
    messages.last().is_some_and(is_end) && (since_last < soon || ends >= many)
}

fn is_end(message: &LogMessage) -> bool {
    match message {
        LogMessage::Change(bytes) => bytes.first() == Some(&b'C'),
        LogMessage::Reached(_) => false,
    }
}

fn outage(error: io::Error) -> LogError {
    LogError::Unavailable(Box::new(error))
}

fn truncated() -> LogError {
    super::unreadable("a message of the stream of changes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: u8) -> LogMessage {
        LogMessage::Change(Bytes::copy_from_slice(&[kind, 1, 2]))
    }

    fn transactions(count: usize) -> Vec<LogMessage> {
        let one = || [b'B', b'I', b'C'].map(change);
        std::iter::repeat_with(one).take(count).flatten().collect()
    }

    #[test]
    fn transactions_that_come_soon_or_many_at_once_are_dense() {
        let (soon, many) = DENSE;
        let early = soon.checked_sub(Duration::from_nanos(1)).unwrap();
        assert!(is_dense(&transactions(1), early));
        assert!(!is_dense(&transactions(1), soon));
        assert!(!is_dense(&transactions(many - 1), soon));
        assert!(is_dense(&transactions(many), Duration::MAX));
    }

    #[test]
    fn a_position_is_complete_outside_of_transactions() {
        let start = Some(LogPosition(1));
        let begun = complete_after(start, b"B123");
        assert_eq!(begun, None);
        assert_eq!(complete_after(begun, b"I123"), None);
        let commit = b"C\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x0Arest";
        assert_eq!(complete_after(begun, commit), Some(LogPosition(10)));
        assert_eq!(complete_after(start, b"R123"), start);
    }

    #[test]
    fn no_pause_inside_a_transaction_or_without_dense_ones() {
        let (_, many) = DENSE;
        let mut open = transactions(many);
        open.extend([change(b'B'), change(b'I')]);
        let mut idle = transactions(many);
        idle.push(LogMessage::Reached(LogPosition(7)));
        let empty = LogMessage::Change(Bytes::new());
        for messages in [vec![], vec![empty], open, idle] {
            assert!(!is_dense(&messages, Duration::ZERO), "{messages:?}");
        }
    }
}
