//! Subscriptions that read at their own pace: those that come back, whose queue was full, or
//! whose rows PostgreSQL has to judge.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_sql::log::{LogError, LogMessage, LogStart};
use tracing::{debug, warn};

use crate::change::{Change, Operation};
use crate::cursor::Place;
use crate::database::{Database, Reading};
use crate::queue::{Ended, Item, Refused, Resync};
use crate::subscriber::{Bound, Outcome, Subscriber};
use crate::transaction::{Assembler, Step};
use crate::type_lookup;

/// Starts a pump behind a place. One that resumes may read the log for what the ring lacks.
pub(crate) fn spawn(
    database: Arc<Database>,
    subscriber: Arc<Subscriber>,
    place: Place,
    resumes: bool,
) {
    tokio::spawn(async move {
        let history = if resumes { database.head() } else { place };
        let mut pump = Pump {
            database,
            subscriber,
            place,
            history,
            bound: None,
        };
        if pump.run(resumes).await.is_err() {
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

/// The subscription is over.
struct Over;

impl Pump {
    async fn run(&mut self, mut resumes: bool) -> Result<(), Over> {
        loop {
            if self.subscriber.is_over() {
                return Err(Over);
            }
            match self.database.read(&self.subscriber, self.place) {
                Reading::Live => return Ok(()),
                Reading::Changes(changes, place) => {
                    self.deliver(&changes).await?;
                    self.place = place;
                }
                Reading::Nothing(wake, place) => {
                    self.place = place;
                    let woken = wake.notified();
                    // What came between reading and listening has woken nobody.
                    if self.database.head() <= place {
                        woken.await;
                    }
                }
                Reading::Behind if std::mem::take(&mut resumes) => self.catch_up().await?,
                Reading::Behind => {
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
            match self.judge(change)? {
                Outcome::Nothing => {}
                outcome => outcomes.push((change.clone(), outcome)),
            }
        }
        let visible = self.visible(&outcomes).await?;
        for ((change, outcome), visible) in outcomes.into_iter().zip(visible) {
            if visible {
                self.push(change.place, outcome).await?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, change: &Change) -> Result<Outcome, Over> {
        let shape = &change.shape;
        if self
            .bound
            .as_ref()
            .is_none_or(|bound| bound.generation != shape.generation)
        {
            match self.subscriber.bind(shape) {
                Ok(bound) => self.bound = Some(bound),
                // The table has become what the subscription wants only later.
                Err(_) if change.place <= self.history => {
                    return Ok(Outcome::Gap(Resync::Incomplete));
                }
                Err(why) => {
                    self.subscriber.end(why);
                    return Err(Over);
                }
            }
        }
        let bound = self.bound.as_ref().ok_or(Over)?;
        Ok(bound.judge(self.subscriber.operations, change))
    }

    /// Which of them row level security lets through.
    async fn visible(&self, outcomes: &[(Arc<Change>, Outcome)]) -> Result<Vec<bool>, Over> {
        let Some(judge) = self
            .subscriber
            .judge
            .as_ref()
            .filter(|_| !outcomes.is_empty())
        else {
            return Ok(vec![true; outcomes.len()]);
        };
        let changes: Vec<_> = outcomes.iter().map(|(change, _)| change.clone()).collect();
        for attempt in 0_u32.. {
            match judge.see(&changes).await {
                Ok(visible) => return Ok(visible),
                // Nothing is delivered unjudged; what is behind for too long is cut.
                Err(
                    error @ (tidegate_sql::Error::Rejected(_) | tidegate_sql::Error::Internal(_)),
                ) => {
                    warn!(role = %self.subscriber.login.role, %error, sqlstate = error.sqlstate(),
                          "the policies of a table could not be applied to its events");
                    break;
                }
                Err(error) if attempt < 20 && !self.subscriber.is_over() => {
                    debug!(%error, "waiting for PostgreSQL to judge events");
                    tokio::time::sleep(std::time::Duration::from_millis(250)).await;
                }
                Err(_) => break,
            }
        }
        self.subscriber.end(Ended::NotAllowed);
        Err(Over)
    }

    async fn push(&self, place: Place, outcome: Outcome) -> Result<(), Over> {
        let cursor = self.database.cursor(place);
        let event = |operation: Operation, row: Bytes| Item::Event {
            cursor,
            operation,
            row,
        };
        let item = match outcome {
            Outcome::Nothing => return Ok(()),
            Outcome::Event(operation, row) => event(operation, row),
            Outcome::Gap(reason) => Item::Resync { cursor, reason },
        };
        loop {
            if self.subscriber.is_over() {
                return Err(Over);
            }
            match self.subscriber.push(item.clone()) {
                Ok(()) => return Ok(()),
                Err(Refused::Closed) => return Err(Over),
                Err(Refused::Full) => {
                    if self.subscriber.outbox.room().await == Err(Refused::Full) {
                        self.subscriber.cut();
                        return Err(Over);
                    }
                }
            }
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
            let types = type_lookup::resolve(database, &unknown).await;
            assembler.describe(relation, &types);
            Ok(Vec::new())
        }
        Step::Changed(change) => Ok(vec![change]),
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
