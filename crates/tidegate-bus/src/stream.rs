//! A stream of changes that come over the bus.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tidegate_changelog::{
    Lineage, LogError, LogMessage, LogPosition, LogResult, LogStart, LogStream,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::debug;

use crate::chain::Offered;
use crate::follower::{Follower, Source};
use crate::joined::Joined;
use crate::kept_messages::KeptMessages;
use crate::message::BusMessage;
use crate::place::Malformed;

/// The silence of the reader after which a stream reads the log itself.
const FALLBACK_SILENCE: Duration = Duration::from_secs(2);
/// The maximum number of batches that wait for the feed.
const QUEUE: usize = 4;

/// A stream of changes that come over the bus.
pub(crate) struct BusStream {
    lineage: Lineage,
    start: LogPosition,
    batches: mpsc::Receiver<LogResult<Vec<LogMessage>>>,
    joined: Arc<Joined>,
    /// Notified when the feed requests a position. The worker then asks the node's own stream for
    /// it.
    wanted: Arc<Notify>,
    worker: JoinHandle<()>,
}

impl BusStream {
    /// A stream that begins at `start`. Its first messages come from `local`, or from `live` if
    /// there is no `local`. `live` must have been subscribed before `start` was determined, so that
    /// no message is missed.
    pub(crate) fn new(
        joined: Arc<Joined>,
        (lineage, start): (Lineage, LogPosition),
        live: broadcast::Receiver<Arc<BusMessage>>,
        local: Option<Box<dyn LogStream>>,
    ) -> Self {
        let mut follower = Follower::new(lineage.log, start);
        if local.is_some() {
            follower.read_own_stream();
            follower.opened(start);
        }
        let wanted = Arc::new(Notify::new());
        let worker = Worker {
            joined: joined.clone(),
            lineage: lineage.clone(),
            follower,
            live,
            local,
            kept: KeptMessages::default(),
            store_searched: false,
            wanted: wanted.clone(),
        };
        let (sender, batches) = mpsc::channel(QUEUE);
        Self {
            lineage,
            start,
            batches,
            joined,
            wanted,
            worker: tokio::spawn(worker.run(sender)),
        }
    }
}

impl Drop for BusStream {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

#[async_trait]
impl LogStream for BusStream {
    fn lineage(&self) -> &Lineage {
        &self.lineage
    }

    fn start(&self) -> LogPosition {
        self.start
    }

    async fn next(&mut self, batch: &mut Vec<LogMessage>) -> LogResult<()> {
        let ended = || Err(LogError::Unavailable("the stream of the bus ended".into()));
        let mut received = self.batches.recv().await.unwrap_or_else(ended)?;
        batch.append(&mut received);
        Ok(())
    }

    /// Does nothing, because the reader confirms for all nodes.
    fn confirm(&mut self, _position: LogPosition) {}

    fn request_position(&mut self) {
        self.wanted.notify_one();
        self.joined.database.wanted.notify_one();
    }
}

struct Worker {
    joined: Arc<Joined>,
    lineage: Lineage,
    follower: Follower,
    live: broadcast::Receiver<Arc<BusMessage>>,
    /// The node's own stream; `None` if the follower does not need one, or if it is not open yet.
    local: Option<Box<dyn LogStream>>,
    /// The messages from JetStream that fill a gap.
    kept: KeptMessages,
    /// Whether JetStream was searched for the missing changes. Also true if the search failed while
    /// the bus had a problem.
    store_searched: bool,
    wanted: Arc<Notify>,
}

impl Worker {
    async fn run(mut self, batches: mpsc::Sender<LogResult<Vec<LogMessage>>>) {
        let mut out = Vec::new();
        loop {
            let step = match self.follower.source() {
                Source::Live => self.live(&mut out).await,
                Source::Store => self.fetch(&mut out).await,
                Source::Slot => self.read(&mut out).await,
            };
            // Sending fails if the stream was dropped, because the stream holds the receiver.
            if !out.is_empty() && batches.send(Ok(std::mem::take(&mut out))).await.is_err() {
                return;
            }
            if let Err(error) = step {
                let _ = batches.send(Err(error)).await;
                return;
            }
        }
    }

    /// Waits for live messages and processes them. If the reader is silent for too long, makes the
    /// node read the log itself.
    async fn live(&mut self, out: &mut Vec<LogMessage>) -> LogResult<()> {
        let silence = self.joined.database.silence();
        let Some(timeout) = FALLBACK_SILENCE.checked_sub(silence) else {
            debug!(database = %self.joined.database.name, "no reader is heard; reading the changes");
            self.store_searched = false;
            self.follower.read_own_stream();
            return Ok(());
        };
        tokio::select! {
            received = self.live.recv() => self.take(received, out)?,
            () = sleep(timeout) => return Ok(()),
        }
        while self.follower.source() == Source::Live
            && let Ok(message) = self.live.try_recv()
        {
            self.take(Ok(message), out)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        received: Result<Arc<BusMessage>, RecvError>,
        out: &mut Vec<LogMessage>,
    ) -> LogResult<()> {
        let message = match received {
            Ok(message) => message,
            // Messages were dropped. The next message shows the gap.
            Err(RecvError::Lagged(_)) => return Ok(()),
            Err(RecvError::Closed) => {
                return Err(LogError::Unavailable("the bus was closed".into()));
            }
        };
        match self.follower.live(&message, out).map_err(malformed)? {
            Offered::OtherLog => Err(other_timeline()),
            Offered::Taken | Offered::Known | Offered::Gap => Ok(()),
        }
    }

    /// Reads the next message from JetStream, to fill a gap.
    async fn fetch(&mut self, out: &mut Vec<LogMessage>) -> LogResult<()> {
        let database = &self.joined.database;
        let place = self.follower.place();
        let message = self.kept.next(database, &self.lineage, place).await;
        // A failed request does not count as a search, because JetStream may answer as soon as it
        // has a leader. While the bus has a problem, a failed request counts as a search, because
        // JetStream may not answer for a long time.
        self.store_searched = message.is_ok() || database.shared.problem.lock().is_some();
        let message = message.ok().flatten();
        if message.is_some() {
            let count = &database.shared.counters.from_store;
            count.fetch_add(1, Ordering::Relaxed);
        } else {
            debug!(database = %database.name, "JetStream does not have the missing changes");
        }
        let fetched = self.follower.fetched(message.as_ref(), out);
        fetched.map_err(malformed)?;
        if self.follower.source() != Source::Store {
            self.kept = KeptMessages::default();
        }
        Ok(())
    }

    /// Reads the log with the node's own stream, until a live message leaves no gap.
    async fn read(&mut self, out: &mut Vec<LogMessage>) -> LogResult<()> {
        let Some(mut local) = self.local.take() else {
            return self.open(out).await;
        };
        let mut batch = Vec::new();
        tokio::select! {
            next = local.next(&mut batch) => {
                next?;
                for message in batch.drain(..) {
                    self.follower.local(&message, out).map_err(malformed)?;
                }
                local.confirm(self.follower.complete());
            }
            received = self.live.recv() => self.take(received, out)?,
            () = self.wanted.notified() => local.request_position(),
        }
        if self.follower.source() == Source::Slot {
            self.local = Some(local);
        }
        Ok(())
    }

    /// Opens the node's own stream. Stops opening it if a live message leaves no gap, because the
    /// stream is then not needed.
    async fn open(&mut self, out: &mut Vec<LogMessage>) -> LogResult<()> {
        let database = self.joined.database.clone();
        let start = LogStart::At {
            log: self.follower.identity(),
            position: self.follower.complete(),
        };
        let mut open = database.shared.log.open(&database.name, start);
        let stream = loop {
            tokio::select! {
                opened = &mut open => break opened.map_err(|error| self.explain(error))?,
                received = self.live.recv() => {
                    self.take(received, out)?;
                    if self.follower.source() != Source::Slot {
                        return Ok(());
                    }
                }
            }
        };
        if stream.lineage().log != self.follower.identity() {
            return Err(other_timeline());
        }
        database
            .shared
            .counters
            .from_slot
            .fetch_add(1, Ordering::Relaxed);
        self.follower.opened(stream.start());
        self.local = Some(stream);
        Ok(())
    }

    /// The error that ends the stream. If PostgreSQL no longer has the changes but JetStream was
    /// not searched yet, the error lets the feed open the stream again.
    fn explain(&self, error: LogError) -> LogError {
        match error {
            LogError::Gone if !self.store_searched => {
                LogError::Unavailable("no node reads the changes".into())
            }
            error => error,
        }
    }
}

fn malformed(error: Malformed) -> LogError {
    LogError::Internal(Box::new(error))
}

fn other_timeline() -> LogError {
    LogError::Unavailable("the log continues on another timeline".into())
}
