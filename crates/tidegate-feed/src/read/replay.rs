//! Replays changes for a subscription that resumes at a cursor. The changes come from the ring or
//! from the change log, until the subscription can join the other subscriptions of its connection.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_changelog::{LogError, LogMessage, LogStart};
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

/// Starts a task that replays the changes after a position.
pub(crate) fn spawn(
    database: Arc<DatabaseFeed>,
    subscriber: Arc<Subscriber>,
    position: EventPosition,
) {
    tokio::spawn(async move {
        let history = database.hub.head();
        let mut replay = Replay {
            database,
            subscriber,
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
        let database = self.database.clone();
        let caught_up = async {
            let _permit = database.replay_permits.acquire().await;
            // While this replay waited for its permit, the stream may have filled the ring with the
            // needed changes.
            if database.hub.covers(self.position) {
                return Ok(());
            }
            self.read_log().await
        };
        match caught_up.await {
            Ok(()) => Ok(()),
            Err(ReplayError::SubscriptionEnded) => Err(SubscriptionEnded),
            Err(ReplayError::Failed(error)) => {
                if !matches!(error, LogError::Gone) {
                    warn!(database = %database.name, %error, "could not replay changes for a subscription that resumes");
                }
                self.position = self.database.hub.head();
                self.push(self.position, ChangeOutcome::Gap(Resync::Expired))
                    .await
            }
        }
    }

    async fn read_log(&mut self) -> Result<(), ReplayError> {
        let database = self.database.clone();
        let log = database.hub.log_identity();
        let position = self.position.commit;
        let start = LogStart::At { log, position };
        let mut stream = database.log.open(&database.name, start).await?;
        if stream.lineage().log != database.hub.log_identity() {
            return Err(ReplayError::Failed(LogError::Gone));
        }
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

/// Decodes a message to changes.
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

/// Why a replay stopped.
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
