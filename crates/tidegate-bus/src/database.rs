//! A database whose changes this node needs, with what the bus has reported about the database's
//! reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tidegate_changelog::{Lineage, LogPosition};
use tidegate_sql::DatabaseName;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::{Instant, timeout};
use tracing::warn;

use crate::message::BusMessage;
use crate::place::Malformed;
use crate::seal::SealedKind;
use crate::shared::SharedBus;
use crate::stored::Stored;

/// The maximum number of live messages that wait for a slow stream. A stream that misses messages
/// reads them from JetStream.
const QUEUE: usize = 256;
/// How long a new stream waits for the position of the reader. If there is no reader, this node may
/// become the reader in this time.
const HEAD_TIMEOUT: Duration = Duration::from_millis(1500);
/// The interval at which the node asks the reader for its position during [`HEAD_TIMEOUT`].
const HEAD_INTERVAL: Duration = Duration::from_millis(100);
/// The silence after which this node tries to replace the reader: two heartbeats are missing. If
/// the reader is only late, the attempt fails, because PostgreSQL lets only one process at a time
/// use the slot.
pub(crate) const ELECTION_SILENCE: Duration = Duration::from_millis(450);
/// How long a node that has just started to use a database waits for a message of a reader before
/// it tries to become the reader.
const FIRST_SILENCE: Duration = Duration::from_millis(300);

/// How far the reader has read the log.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) lineage: Lineage,
    /// The reader has sent every change before this position.
    pub(crate) complete: LogPosition,
}

/// A database whose changes this node needs.
pub(crate) struct Database {
    pub(crate) name: DatabaseName,
    pub(crate) shared: Arc<SharedBus>,
    /// The prefix of the database's NATS subjects. The suffix is `.p` for messages that the reader
    /// sends to the nodes, `.e` for messages of the reader that JetStream keeps, and `.q` for
    /// messages to the reader: questions for its position, and reports that a node uses the
    /// database.
    pub(crate) subject: String,
    /// Passes the messages of the reader to this node's streams.
    pub(crate) live: broadcast::Sender<Arc<BusMessage>>,
    /// How far the reader has read; `None` before its first message with a position and a lineage.
    head: watch::Sender<Option<Head>>,
    /// The time of the last message of a reader.
    last_message: Mutex<Instant>,
    /// Whether this node is the reader of the database.
    pub(crate) reads: AtomicBool,
    /// Notified when a stream of this node needs the current position of the reader.
    pub(crate) wanted: Notify,
    /// Notified when a node asks the reader in this process for its position.
    pub(crate) asked: Notify,
    /// The start of the retention window of this node's feed, as a position of the log.
    pub(crate) keep: AtomicU64,
    /// How far JetStream has stored the messages of the reader in this process.
    pub(crate) stored: Mutex<Stored>,
    /// Whether a message was refused. Only the first refused message is logged.
    has_refused: AtomicBool,
}

impl Database {
    pub(crate) fn new(name: DatabaseName, shared: Arc<SharedBus>) -> Self {
        // `last_message` is set to a time in the past, so that the silence reaches
        // `ELECTION_SILENCE` after only `FIRST_SILENCE`. So a database without a reader soon gets
        // one.
        let now = Instant::now();
        let last_message = now.checked_sub(ELECTION_SILENCE.saturating_sub(FIRST_SILENCE));
        Self {
            subject: format!("{}.{}", shared.cell, shared.seal.name(name.as_str())),
            name,
            shared,
            live: broadcast::Sender::new(QUEUE),
            head: watch::Sender::new(None),
            last_message: Mutex::new(last_message.unwrap_or(now)),
            reads: AtomicBool::new(false),
            wanted: Notify::new(),
            asked: Notify::new(),
            keep: AtomicU64::new(0),
            stored: Mutex::default(),
            has_refused: AtomicBool::new(false),
        }
    }

    /// The subject of the messages that JetStream keeps.
    pub(crate) fn event_subject(&self) -> String {
        format!("{}.e", self.subject)
    }

    /// The time since the last message of a reader.
    pub(crate) fn silence(&self) -> Duration {
        self.last_message.lock().elapsed()
    }

    /// Completes when the next message of a reader is recorded.
    pub(crate) async fn next_message(&self) {
        // Waiting fails only if the sender was dropped, but it lives as long as `self`.
        let _ = self.head.subscribe().changed().await;
    }

    /// Waits until the reader has reached `least`. Returns `None` if NATS is not connected, or if
    /// no reader has reached `least` within [`HEAD_TIMEOUT`].
    pub(crate) async fn head(&self, least: LogPosition) -> Option<Head> {
        self.shared.connected()?;
        let mut head = self.head.subscribe();
        let is_fresh = |head: &Option<Head>| {
            let has_reached = head.as_ref().is_some_and(|head| head.complete >= least);
            has_reached && self.silence() < ELECTION_SILENCE
        };
        let deadline = Instant::now() + HEAD_TIMEOUT;
        while Instant::now() < deadline {
            // The request is repeated, because a reader that started after the previous request
            // has not received it.
            self.wanted.notify_one();
            let fresh = timeout(HEAD_INTERVAL, head.wait_for(is_fresh)).await;
            if let Ok(fresh) = fresh {
                return fresh.ok()?.clone();
            }
        }
        None
    }

    /// How far the reader has read according to its messages; `None` before its first message with
    /// a position and a lineage.
    pub(crate) fn last_head(&self) -> Option<Head> {
        self.head.borrow().clone()
    }

    /// Records the position of a message of the reader and passes the message to this node's
    /// streams.
    pub(crate) fn take_message(&self, message: BusMessage) {
        *self.last_message.lock() = Instant::now();
        self.head.send_modify(|head| {
            let same = head.take().filter(|it| it.lineage.log == message.identity);
            *head = match same {
                Some(same) if message.to.is_open() => Some(same),
                Some(same) => Some(Head {
                    complete: same.complete.max(message.to.lsn),
                    lineage: same.lineage,
                }),
                // For another log, a new head is created. It needs the lineage of this log. Only a
                // message without changes contains the lineage.
                None if message.items.is_empty() && !message.to.is_open() => Some(Head {
                    lineage: message.lineage(),
                    complete: message.to.lsn,
                }),
                None => None,
            };
        });
        // Sending fails if the node has no stream, and then the message is not needed.
        let _ = self.live.send(Arc::new(message));
    }

    /// Sends a message of the reader to all nodes.
    pub(crate) async fn publish(&self, message: BusMessage) {
        self.send('p', &message).await;
        self.take_message(message);
    }

    /// Sends a message of the reader to JetStream, which keeps it.
    pub(crate) async fn store(&self, message: &BusMessage) {
        self.send('e', message).await;
    }

    /// Sends a message of the reader. `kind` is the suffix of the subject.
    async fn send(&self, kind: char, message: &BusMessage) {
        let counters = &self.shared.counters;
        if let Some(nats) = self.shared.connected() {
            let sealed = self
                .shared
                .seal
                .seal(&self.name, SealedKind::Event, &message.encode());
            let sent = nats
                .publish(format!("{}.{kind}", self.subject), sealed)
                .await;
            let counter = if sent {
                &counters.sent
            } else {
                &counters.unsent
            };
            counter.fetch_add(1, Ordering::Relaxed);
        } else {
            counters.unsent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Decrypts a message of the bus. Counts a message that cannot be decrypted, and logs the first
    /// one.
    ///
    /// # Errors
    ///
    /// If the message was not sealed by a node of this cluster for this database and this kind.
    pub(crate) fn unseal(&self, kind: SealedKind, sealed: &[u8]) -> Result<Bytes, Malformed> {
        let opened = self.shared.seal.open(&self.name, kind, sealed);
        if opened.is_err() {
            self.shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            if !self.has_refused.swap(true, Ordering::Relaxed) {
                warn!(database = %self.name, "a message on the bus was not sealed with this cluster's key; it is ignored");
            }
        }
        opened
    }

    /// Handles a message that another node has sent on a subject of this database.
    pub(crate) fn receive(&self, message: &async_nats::Message) -> Result<(), Malformed> {
        if message.subject.ends_with(".q") {
            let question = self.unseal(SealedKind::Question, &message.payload)?;
            self.shared.note_other_node(&self.name);
            if !question.is_empty() && self.reads.load(Ordering::Relaxed) {
                self.asked.notify_one();
            }
            return Ok(());
        }
        let text = self.unseal(SealedKind::Event, &message.payload)?;
        self.shared
            .counters
            .received
            .fetch_add(1, Ordering::Relaxed);
        self.shared.note_other_node(&self.name);
        self.take_message(BusMessage::decode(text)?);
        Ok(())
    }
}
