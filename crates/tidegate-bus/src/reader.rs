//! Reads the changes of a database for all nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_changelog::{LogError, LogIdentity, LogMessage, LogPosition, LogResult, LogStream};
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at, timeout};

use crate::batch::Batcher;
use crate::database::Database;
use crate::message::BusMessage;
use crate::place::Place;
use crate::seal::SealedKind;
use crate::stored::Stored;

/// The interval at which the reader reports its position, and sends to JetStream the changes since
/// the last time. Three NATS servers store each message to JetStream. For them, the message costs
/// more than the changes in it. Therefore one message contains the changes of many transactions. If
/// a node misses a live message, it asks the reader. The reader then sends the changes to JetStream
/// immediately.
const HEARTBEAT: Duration = Duration::from_millis(200);
/// The interval at which the reader checks that JetStream has stored the reader's messages.
/// PostgreSQL keeps the changes of one to two intervals, in case JetStream loses its newest
/// messages. A node that loses NATS reads them with its own stream after two seconds. A new reader
/// reads them before new changes, so the interval is not longer.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(5);
/// After PostgreSQL has been silent for the first duration, the reader asks the stream for a
/// position. After the second duration, the reader asks on another connection, because a walsender
/// that decodes a large transaction may not answer for a long time. While the reader waits for the
/// answer on the other connection, it sends no positions to the nodes. Nodes that can reach
/// PostgreSQL then soon read the log themselves.
const POSTGRES_SILENCE: (Duration, Duration) =
    (Duration::from_millis(500), Duration::from_millis(1500));
/// How long PostgreSQL may take to answer on the other connection. After this time the reader ends,
/// because the other nodes wait for it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum number of bytes of changes in a message, unless one change is larger.
const LIMIT: usize = 128 << 10;
/// The maximum size in bytes of the parts of a message other than its changes: the positions,
/// descriptions of tables, and the seal.
const OVERHEAD: usize = 64 << 10;

struct Reader<'a> {
    database: &'a Arc<Database>,
    stream: Box<dyn LogStream>,
    /// Makes the messages that are sent to the nodes immediately.
    live: Batcher,
    /// Makes the larger messages that JetStream keeps. They contain the same changes.
    kept: Batcher,
    /// Whether PostgreSQL has sent anything.
    has_read: bool,
    /// Whether a node waits for the reader's position. The reader sends its position as soon as the
    /// stream has reported one.
    owes_progress: bool,
    /// The position before which every change was read.
    complete: LogPosition,
    /// The value of `complete` at the last check of JetStream. If JetStream has all messages up to
    /// this position at the next check, the position is confirmed to PostgreSQL.
    mark: LogPosition,
    /// Sends positions up to which JetStream has stored all messages.
    stored: mpsc::Sender<LogPosition>,
    contact: Contact,
    /// Sends the result of asking on another connection: whether PostgreSQL has answered.
    answered: mpsc::Sender<bool>,
}

/// Whether PostgreSQL sends messages. If it is silent, how the reader last asked it for a message.
enum Contact {
    /// The time of the last message.
    Received(Instant),
    /// The stream was asked for a position and has sent nothing since. The time is that of the last
    /// message of the stream, or of the last answer on the other connection.
    Asked(Instant),
    /// PostgreSQL was asked on another connection and has not answered yet.
    AskedAgain,
}

/// How a reader has ended.
pub(crate) struct Ended {
    pub(crate) error: LogError,
    /// Whether PostgreSQL had sent anything.
    pub(crate) has_read: bool,
}

/// Reads until the stream breaks.
pub(crate) async fn run(database: &Arc<Database>, stream: Box<dyn LogStream>) -> Ended {
    let start = stream.start();
    *database.stored.lock() = Stored::at(start);
    let nats = database.shared.connected();
    let longest = nats.map_or(LIMIT, |nats| nats.max_payload().saturating_sub(OVERHEAD));
    let (stored, mut confirmations) = mpsc::channel(1);
    let (answered, mut responses) = mpsc::channel(1);
    let batcher = Batcher::new(stream.lineage().clone(), start, LIMIT.min(longest), longest);
    let mut reader = Reader {
        live: batcher.clone(),
        kept: batcher,
        database,
        stream,
        has_read: false,
        owes_progress: false,
        complete: start,
        mark: start,
        stored,
        contact: Contact::Received(Instant::now()),
        answered,
    };
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut confirm = interval_at(Instant::now() + CONFIRM_INTERVAL, CONFIRM_INTERVAL);
    confirm.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut batch, mut out) = (Vec::new(), Outgoing::default());
    loop {
        let mut outcome = Ok(());
        tokio::select! {
            next = reader.stream.next(&mut batch) => {
                reader.contact = Contact::Received(Instant::now());
                outcome = next.and_then(|()| reader.take(&mut batch, &mut out));
            }
            () = database.asked.notified() => {
                reader.stream.request_position();
                reader.owes_progress = true;
                // The node may need changes that it reads from JetStream.
                reader.kept.flush(&mut out.kept);
            }
            _ = heartbeat.tick() => reader.send_heartbeat(&mut out),
            _ = confirm.tick() => reader.check_kept(&mut out.kept),
            Some(answered) = responses.recv() => outcome = reader.handle_response(answered),
            Some(position) = confirmations.recv() => {
                reader.stream.confirm(position);
                // The request also tells PostgreSQL the confirmed position.
                reader.stream.request_position();
            }
        }
        if let Err(error) = outcome {
            // Before the reader ends, it sends its position to the nodes, and its last changes to
            // JetStream. The next reader begins at an earlier position. Until the next reader has
            // caught up, a node that missed changes reads them from JetStream.
            reader.report_position(&mut out);
            reader.store_position(&mut out.kept);
            out.send(database).await;
            let has_read = reader.has_read;
            return Ended { error, has_read };
        }
        out.send(database).await;
    }
}

/// Messages that are ready to be sent.
#[derive(Default)]
struct Outgoing {
    live: Vec<BusMessage>,
    kept: Vec<BusMessage>,
}

impl Outgoing {
    async fn send(&mut self, database: &Database) {
        for message in self.live.drain(..) {
            database.publish(message).await;
        }
        for message in self.kept.drain(..) {
            database.store(&message).await;
        }
    }
}

impl Reader<'_> {
    fn take(&mut self, batch: &mut Vec<LogMessage>, out: &mut Outgoing) -> Result<(), LogError> {
        self.has_read = true;
        let mut has_position = false;
        for message in batch.drain(..) {
            has_position |= matches!(message, LogMessage::Reached(_));
            let kept = self.kept.push(message.clone(), &mut out.kept);
            let pushed = kept.and_then(|()| self.live.push(message, &mut out.live));
            pushed.map_err(|error| LogError::Internal(Box::new(error)))?;
        }
        self.live.finish(&mut out.live);
        if has_position && std::mem::take(&mut self.owes_progress) {
            out.live.push(self.live.progress());
        }
        let place = self.live.place();
        if !place.is_open() {
            self.complete = place.lsn;
        }
        Ok(())
    }

    /// Reports the position to the nodes, and sends to JetStream the changes since the last time.
    fn send_heartbeat(&mut self, out: &mut Outgoing) {
        self.report_position(out);
        self.kept.flush(&mut out.kept);
        self.confirm_window();
        self.check_contact();
    }

    /// Reports the position to the nodes, unless PostgreSQL may be unreachable. The nodes would stop
    /// reading the log themselves.
    fn report_position(&self, out: &mut Outgoing) {
        if !matches!(self.contact, Contact::AskedAgain) {
            out.live.push(self.live.progress());
        }
    }

    /// Appends to `kept` the changes that were not sent to JetStream yet. Then appends a message
    /// with the current position, unless a transaction is open. JetStream then has all changes
    /// before this position.
    fn store_position(&mut self, kept: &mut Vec<BusMessage>) {
        self.kept.flush(kept);
        // Inside a transaction, `progress` would report the position before the transaction. The
        // last message with changes reports a later place.
        if !self.kept.place().is_open() {
            kept.push(self.kept.progress());
        }
    }

    /// Confirms to PostgreSQL the changes before the retention window of this node's feed.
    fn confirm_window(&mut self) {
        let keep = LogPosition(self.database.keep.load(Ordering::Relaxed));
        self.stream.confirm(keep.min(self.complete));
    }

    /// Checks whether PostgreSQL still answers, after it has sent nothing for some time.
    fn check_contact(&mut self) {
        match self.contact {
            Contact::Received(at) if at.elapsed() > POSTGRES_SILENCE.0 => {
                self.stream.request_position();
                self.contact = Contact::Asked(at);
            }
            Contact::Asked(at) if at.elapsed() > POSTGRES_SILENCE.1 => {
                self.ask_on_other_connection();
                self.contact = Contact::AskedAgain;
            }
            _ => {}
        }
    }

    /// Asks PostgreSQL for the end of the log on another connection, in the background.
    fn ask_on_other_connection(&self) {
        let (database, answered) = (self.database.clone(), self.answered.clone());
        tokio::spawn(async move {
            let asked = database.shared.log.end(&database.name);
            let has_responded = is_response(&timeout(RESPONSE_TIMEOUT, asked).await);
            // Sending fails if the reader has ended, and then the answer is not needed.
            let _ = answered.try_send(has_responded);
        });
    }

    /// Returns an error, which ends the reader, if PostgreSQL has answered on no connection.
    /// `has_responded` says whether it has answered on the other connection.
    fn handle_response(&mut self, has_responded: bool) -> Result<(), LogError> {
        if matches!(self.contact, Contact::AskedAgain) {
            if !has_responded {
                let reason = "PostgreSQL does not answer this node";
                return Err(LogError::Unavailable(reason.into()));
            }
            self.contact = Contact::Asked(Instant::now());
        }
        Ok(())
    }

    /// Checks whether JetStream has the messages of the reader, and sends a message with the position
    /// if one is needed. Messages that were sent while NATS could not be reached are missing in
    /// JetStream. JetStream counts as broken until it has a later message. Therefore such a message
    /// is sent even if there are no further changes.
    fn check_kept(&mut self, kept: &mut Vec<BusMessage>) {
        let needs_position = self.complete > self.mark || self.database.stored.lock().has_missed();
        self.check_stored();
        if needs_position {
            self.store_position(kept);
        }
    }

    /// Checks in the background whether JetStream has all messages up to the position that the
    /// reader had at the last check. If so, PostgreSQL no longer needs to keep their changes.
    fn check_stored(&mut self) {
        let mark = std::mem::replace(&mut self.mark, self.complete);
        let identity = self.stream.lineage().log;
        let (database, stored) = (self.database.clone(), self.stored.clone());
        tokio::spawn(async move {
            if is_stored(&database, identity, mark).await {
                // Sending fails if the reader has ended, and then the confirmation is not needed.
                let _ = stored.try_send(mark);
            }
        });
    }
}

/// Whether PostgreSQL has responded on another connection. An error counts as a response, unless it
/// means that PostgreSQL is unavailable.
fn is_response(asked: &Result<LogResult<LogPosition>, Elapsed>) -> bool {
    !matches!(asked, Err(_) | Ok(Err(LogError::Unavailable(_))))
}

/// Whether JetStream has all messages of a log up to `mark`. Reports a problem of the bus if
/// JetStream repeatedly lacks them.
async fn is_stored(database: &Database, identity: LogIdentity, mark: LogPosition) -> bool {
    let Some(nats) = database.shared.connected() else {
        return false;
    };
    // If the request fails, for example because the stream has no leader, it is unknown whether the
    // messages are there.
    let Ok(last) = nats.last(&database.event_subject()).await else {
        return false;
    };
    let text = last.and_then(|last| database.unseal(SealedKind::Event, &last.payload).ok());
    let last = text.and_then(|text| BusMessage::decode(text).ok());
    let has = last.is_some_and(|it| it.identity == identity && it.to >= Place::at(mark));
    let is_broken = database.stored.lock().note(mark, has);
    let is_broken = is_broken && database.reads.load(Ordering::Relaxed);
    database.shared.note_unstored(&database.name, is_broken);
    has
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    async fn counts_as_response(asked: impl Future<Output = LogResult<LogPosition>>) -> bool {
        is_response(&timeout(RESPONSE_TIMEOUT, asked).await)
    }

    #[tokio::test(start_paused = true)]
    async fn only_silence_and_an_outage_are_no_response() {
        assert!(counts_as_response(ready(Ok(LogPosition(7)))).await);
        for error in [
            LogError::Gone,
            LogError::Internal("permission denied".into()),
            LogError::TimedOut {
                what: "statement timeout".to_owned(),
                limit: RESPONSE_TIMEOUT,
            },
        ] {
            assert!(counts_as_response(ready(Err(error))).await);
        }
        let outage = LogError::Unavailable("connection refused".into());
        assert!(!counts_as_response(ready(Err(outage))).await);
        assert!(!counts_as_response(pending()).await);
    }
}
