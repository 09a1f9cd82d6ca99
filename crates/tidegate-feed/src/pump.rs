//! A subscription that comes back: it catches up on its own, until it can go on with the others
//! of its connection.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_sql::log::{LogError, LogMessage, LogStart};
use tracing::warn;

use crate::change::Change;
use crate::cursor::Place;
use crate::database::Database;
use crate::follower;
use crate::labels;
use crate::pace::{self, Over};
use crate::queue::Resync;
use crate::reading::Reading;
use crate::subscriber::{Bound, Outcome, Subscriber};
use crate::transaction::{Assembler, Step};
use crate::type_lookup;

/// Starts a pump behind a place. It reads the log for what the ring lacks.
pub(crate) fn spawn(database: Arc<Database>, subscriber: Arc<Subscriber>, place: Place) {
    tokio::spawn(async move {
        let history = database.head();
        let mut pump = Pump {
            database,
            subscriber,
            place,
            history,
            bound: None,
        };
        if pump.run().await.is_err() {
            pump.database.detach(&pump.subscriber);
        }
    });
}

struct Pump {
    database: Arc<Database>,
    subscriber: Arc<Subscriber>,
    place: Place,
    /// Up to here changes are older than the subscription.
    history: Place,
    bound: Option<Bound>,
}

impl Pump {
    async fn run(&mut self) -> Result<(), Over> {
        let mut may_replay = true;
        loop {
            if self.subscriber.is_over() {
                return Err(Over);
            }
            match self.database.read(&self.subscriber, self.place) {
                Reading::Joined(behind) => {
                    if let Some(behind) = behind {
                        follower::spawn(self.database.clone(), behind);
                    }
                    return Ok(());
                }
                Reading::Changes(changes, place) => {
                    self.deliver(&changes).await?;
                    self.place = place;
                }
                Reading::Lost if std::mem::take(&mut may_replay) => self.catch_up().await?,
                Reading::Lost => {
                    // The stream began anew, or the ring has gone on without this subscription.
                    match self.database.pump_place(&self.subscriber) {
                        Some(place) if place > self.place => self.place = place,
                        _ => {
                            self.subscriber.cut();
                            return Err(Over);
                        }
                    }
                }
            }
        }
    }

    /// Delivers what matters of some changes, waiting for room.
    async fn deliver(&mut self, changes: &[Arc<Change>]) -> Result<(), Over> {
        let mut outcomes = Vec::new();
        for change in changes {
            let (subscriber, history) = (&self.subscriber, self.history);
            match pace::judge(subscriber, &mut self.bound, change, history)? {
                Outcome::Nothing => {}
                outcome => outcomes.push((change.clone(), outcome)),
            }
        }
        let seen: Vec<_> = outcomes.iter().map(|(change, _)| change.clone()).collect();
        let visible = pace::visible(&self.subscriber, &seen).await?;
        for ((change, outcome), visible) in outcomes.into_iter().zip(visible) {
            if visible {
                self.push(change.place, outcome).await?;
            }
        }
        Ok(())
    }

    async fn push(&self, place: Place, outcome: Outcome) -> Result<(), Over> {
        let cursor = self.database.cursor(place);
        match outcome.item(cursor) {
            Some(item) => pace::push(&self.subscriber, item).await,
            None => Ok(()),
        }
    }

    /// Reads the log up to where the ring goes on.
    async fn catch_up(&mut self) -> Result<(), Over> {
        let database = self.database.clone();
        let caught = async {
            let _permit = database.catch_up.acquire().await;
            // Another's replay may have taken long enough for the stream to get here.
            if database.covers(self.place) {
                return Ok(());
            }
            self.replay().await
        };
        match caught.await {
            Ok(()) => Ok(()),
            Err(Replay::Over) => Err(Over),
            Err(Replay::Failed(error)) => {
                if !matches!(error, LogError::Gone) {
                    warn!(%error, "the log could not be read for a subscriber that came back");
                }
                self.place = self.database.head();
                self.push(self.place, Outcome::Gap(Resync::Expired)).await
            }
        }
    }

    async fn replay(&mut self) -> Result<(), Replay> {
        let database = self.database.clone();
        let start = LogStart::At(self.place.commit);
        let mut stream = database.log.open(&database.name, start).await?;
        if stream.identity() != database.log_identity() {
            return Err(Replay::Failed(LogError::Gone));
        }
        let mut assembler = Assembler::default();
        let mut batch = Vec::new();
        let mut reached = self.place;
        while !database.covers(reached) {
            stream.ask();
            stream.next(&mut batch).await?;
            let mut changes = Vec::new();
            for message in batch.drain(..) {
                match message {
                    LogMessage::Reached(end) if !assembler.is_open() => {
                        reached = reached.max(Place::before(end));
                    }
                    LogMessage::Reached(_) => {}
                    LogMessage::Change(bytes) => {
                        for change in step(&database, &mut assembler, &bytes).await? {
                            reached = reached.max(change.place);
                            changes.push(Arc::new(change));
                        }
                    }
                }
            }
            let relation = self.subscriber.relation;
            changes.retain(|one| one.shape.oid == relation && one.place > self.place);
            self.deliver(&changes).await?;
            self.place = self.place.max(reached);
        }
        Ok(())
    }
}

/// The changes that a message brings.
async fn step(
    database: &Database,
    assembler: &mut Assembler,
    bytes: &Bytes,
) -> Result<Vec<Change>, LogError> {
    let types = database.types.lock().clone();
    let taken = assembler.take(bytes, &types);
    match taken.map_err(|error| LogError::Internal(Box::new(error)))? {
        Step::Undescribed(relation, unknown) => {
            let types = type_lookup::resolve(database, &unknown).await?;
            assembler.describe(relation, &types);
            Ok(Vec::new())
        }
        Step::Changed(mut change) => {
            let strange = labels::strange(database, &change);
            if !strange.is_empty() {
                labels::learn(database, assembler, strange, &mut change).await?;
            }
            Ok(vec![change])
        }
        Step::Truncated(changes) => Ok(changes),
        Step::Nothing | Step::Described(_) | Step::Committed(_) => Ok(Vec::new()),
    }
}

/// Why a replay stopped.
enum Replay {
    Over,
    Failed(LogError),
}

impl From<LogError> for Replay {
    fn from(error: LogError) -> Self {
        Self::Failed(error)
    }
}

impl From<Over> for Replay {
    fn from(_: Over) -> Self {
        Self::Over
    }
}
