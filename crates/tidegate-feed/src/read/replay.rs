//! Replays changes for a subscription that resumes at a cursor. The changes come from the ring or
//! from the change log, until the subscription can join the other subscriptions of its connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_changelog::{LogError, LogIdentity, LogMessage, LogStart};
use tokio::time::sleep;
use tracing::warn;

use crate::database::database_feed::DatabaseFeed;
use crate::decode::change::RowChange;
use crate::decode::decoder::{ChangeDecoder, Decoded};
use crate::decode::enum_labels;
use crate::dispatch::backlog::ReplayRead;
use crate::dispatch::subscriber::{ChangeOutcome, SchemaBinding, Subscriber};
use crate::event::cursor::EventPosition;
use crate::event::item::Resync;
use crate::read::delivery::{self, SubscriptionEnded};
use crate::read::lagging;

/// The first and the longest pause between two attempts to read the change log.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The number of failed attempts to read the change log after which a gap is reported. Attempts
/// that fail while the live reader has no stream do not count.
const ATTEMPTS: usize = 8;

/// Starts a task that replays the changes after a position.
pub(crate) fn spawn(
    database: Arc<DatabaseFeed>,
    subscriber: Arc<Subscriber>,
    position: EventPosition,
) {
    tokio::spawn(async move {
        let (log, history) = (database.hub.log_identity(), database.hub.head());
        let mut replay = Replay {
            database,
            subscriber,
            log,
            position,
            history,
            binding: None,
        };
        if replay.run().await.is_err() {
            replay.database.hub.detach(&replay.subscriber);
        }
    });
}

struct Replay {
    database: Arc<DatabaseFeed>,
    subscriber: Arc<Subscriber>,
    /// The change log to which `position` belongs.
    log: LogIdentity,
    /// Changes up to this position were delivered.
    position: EventPosition,
    /// Changes up to this position had been dispatched when the subscription began.
    history: EventPosition,
    binding: Option<SchemaBinding>,
}

impl Replay {
    async fn run(&mut self) -> Result<(), SubscriptionEnded> {
        let mut may_read_log = true;
        loop {
            if self.subscriber.is_ended() {
                return Err(SubscriptionEnded);
            }
            let hub = &self.database.hub;
            match hub.read_replay(&self.subscriber, self.position) {
                ReplayRead::Joined(connection) => {
                    if let Some(connection) = connection {
                        lagging::spawn(hub.clone(), connection);
                    }
                    return Ok(());
                }
                ReplayRead::Changes(changes, position) => {
                    self.deliver(&changes).await?;
                    self.position = position;
                }
                ReplayRead::Lost if std::mem::take(&mut may_read_log) => self.catch_up().await?,
                ReplayRead::Lost => {
                    // There are two possible causes. A new stream may have moved the position
                    // forward. Or the client reads too slowly, and the ring has dropped changes
                    // that the subscription needs.
                    match hub.replay_position(&self.subscriber) {
                        Some(position) if position > self.position => self.position = position,
                        _ => {
                            self.subscriber.close_slow();
                            return Err(SubscriptionEnded);
                        }
                    }
                }
            }
        }
    }

    /// Evaluates and delivers changes. Waits while the queue has no room.
    async fn deliver(&mut self, changes: &[Arc<RowChange>]) -> Result<(), SubscriptionEnded> {
        let mut outcomes = Vec::new();
        for change in changes {
            let (subscriber, history) = (&self.subscriber, self.history);
            match delivery::evaluate(subscriber, &mut self.binding, change, history)? {
                ChangeOutcome::Nothing => {}
                outcome => outcomes.push((change.clone(), outcome)),
            }
        }
        let relevant: Vec<_> = outcomes.iter().map(|(change, _)| change.clone()).collect();
        let visible = delivery::visible(&self.subscriber, &relevant).await?;
        for ((change, outcome), visible) in outcomes.into_iter().zip(visible) {
            if visible {
                self.push(change.position, outcome).await?;
            }
        }
        Ok(())
    }

    async fn push(
        &self,
        position: EventPosition,
        outcome: ChangeOutcome,
    ) -> Result<(), SubscriptionEnded> {
        let cursor = self.database.hub.cursor(position);
        match outcome.item(cursor) {
            Some(item) => delivery::push(&self.subscriber, item).await,
            None => Ok(()),
        }
    }

    /// Reads the change log up to the position at which the ring continues. If the changes cannot
    /// be read, for example because the log no longer contains them, the subscription gets a gap
    /// and continues at the end of the ring.
    async fn catch_up(&mut self) -> Result<(), SubscriptionEnded> {
        let (mut pause, mut attempts) = (PAUSE.0, ATTEMPTS);
        loop {
            let error = match self.read_missing().await {
                Ok(()) => return Ok(()),
                Err(ReplayError::SubscriptionEnded) => return Err(SubscriptionEnded),
                Err(ReplayError::Failed(error)) => error,
            };
            // A failure counts only while the live reader has a stream. While it has none, no
            // subscription gets changes, so this one misses nothing by waiting.
            if self.database.stream.is_live() {
                attempts -= 1;
            }
            match error {
                LogError::Gone => return self.skip(Resync::Expired).await,
                LogError::Unavailable(_) | LogError::TimedOut { .. } if attempts > 0 => {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                error => {
                    warn!(database = %self.database.name, %error, "could not replay changes for a subscription that resumes");
                    return self.skip(Resync::Interrupted).await;
                }
            }
            if self.subscriber.is_ended() {
                return Err(SubscriptionEnded);
            }
        }
    }

    /// Reports a gap, and continues at the end of the ring.
    async fn skip(&mut self, reason: Resync) -> Result<(), SubscriptionEnded> {
        self.position = self.database.hub.head();
        self.push(self.position, ChangeOutcome::Gap(reason)).await
    }

    async fn read_missing(&mut self) -> Result<(), ReplayError> {
        let database = self.database.clone();
        let _permit = database.replay_permits.acquire().await;
        // While this replay waited, the stream may have filled the ring with the needed changes, or
        // a new stream may have reported a gap up to its start.
        if let Some(position) = database.hub.replay_position(&self.subscriber) {
            self.position = self.position.max(position);
        }
        if database.hub.covers(self.position) {
            return Ok(());
        }
        self.read_log().await
    }

    async fn read_log(&mut self) -> Result<(), ReplayError> {
        let database = self.database.clone();
        let start = LogStart::At {
            log: self.log,
            position: self.position.commit,
        };
        let mut stream = database.log.open(&database.name, start).await?;
        // After a promotion, this stream may already read the new log, while the live reader has not
        // opened it yet. The error makes the replay try again later.
        let log = stream.lineage().log;
        if log != database.hub.log_identity() {
            let reason = "the log continues on another timeline";
            return Err(LogError::Unavailable(reason.into()).into());
        }
        self.log = log;
        let mut decoder = ChangeDecoder::default();
        let mut batch = Vec::new();
        let mut reached = self.position;
        while !database.hub.covers(reached) {
            stream.request_position();
            stream.next(&mut batch).await?;
            let mut changes = Vec::new();
            for message in batch.drain(..) {
                match message {
                    LogMessage::Reached(end) if !decoder.is_open() => {
                        reached = reached.max(EventPosition::before(end));
                    }
                    LogMessage::Reached(_) => {}
                    LogMessage::Change(bytes) => {
                        for change in decode(&database, &mut decoder, &bytes).await? {
                            reached = reached.max(change.position);
                            changes.push(Arc::new(change));
                        }
                    }
                }
            }
            let relation = self.subscriber.relation;
            changes.retain(|one| one.schema.oid == relation && one.position > self.position);
            self.deliver(&changes).await?;
            self.position = self.position.max(reached);
        }
        Ok(())
    }
}

/// Decodes a message of the change log. Returns the changes in it, often none.
async fn decode(
    database: &DatabaseFeed,
    decoder: &mut ChangeDecoder,
    bytes: &Bytes,
) -> Result<Vec<RowChange>, LogError> {
    let types = database.types.current();
    let result = decoder.decode(bytes, &types);
    match result.map_err(|error| LogError::Internal(Box::new(error)))? {
        Decoded::Undescribed(relation, unknown) => {
            let types = database.types.resolve(&database.catalog, &unknown).await?;
            decoder.describe(relation, &types);
            Ok(Vec::new())
        }
        Decoded::Changed(mut change) => {
            let (catalog, types) = (&database.catalog, &database.types);
            let unknown = enum_labels::unknown(types, &change);
            if !unknown.is_empty() {
                enum_labels::refresh(catalog, types, decoder, unknown, &mut change).await?;
            }
            Ok(vec![change])
        }
        Decoded::Truncated(changes) => Ok(changes),
        Decoded::Nothing | Decoded::Described(_) | Decoded::Committed(_) => Ok(Vec::new()),
    }
}

/// Why a replay could not read the change log.
enum ReplayError {
    SubscriptionEnded,
    Failed(LogError),
}

impl From<LogError> for ReplayError {
    fn from(error: LogError) -> Self {
        Self::Failed(error)
    }
}

impl From<SubscriptionEnded> for ReplayError {
    fn from(_: SubscriptionEnded) -> Self {
        Self::SubscriptionEnded
    }
}
