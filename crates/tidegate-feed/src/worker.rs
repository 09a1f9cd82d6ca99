//! Reads the stream of a database, and opens it again when it breaks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::Type;
use tidegate_sql::log::{LogError, LogMessage, LogPosition, LogStart, LogStream};
use tracing::{info, warn};

use crate::change::Change;
use crate::cursor::Place;
use crate::database::{Capture, Database};
use crate::guard;
use crate::labels;
use crate::recapture;
use crate::shape::Shape;
use crate::shown;
use crate::standing;
use crate::stream_state::Problem;
use crate::transaction::{Assembler, Step};
use crate::type_lookup;

/// The waits between attempts: the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));
/// How long the stream waits, each time, for those who would fall out of the memory.
const COURTESY: Duration = Duration::from_millis(5);

/// Runs until it is aborted. The first stream starts at `first`.
pub(crate) async fn run(database: Arc<Database>, first: LogStart) {
    let mut start = first;
    let mut pause = PAUSE.0;
    loop {
        match database.log.open(&database.name, start).await {
            Ok(stream) => {
                let goes_on = matches!(start, LogStart::At(_));
                let error = read(&database, stream, goes_on).await;
                let was_live = database.stream.borrow().live;
                database.stream.send_modify(|state| state.live = false);
                info!(database = %database.name, %error, "the stream of changes ended");
                if was_live {
                    pause = PAUSE.0;
                } else {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                start = LogStart::At(database.stream.borrow().reached);
                if matches!(error, LogError::Gone) {
                    start = LogStart::Now;
                }
            }
            Err(LogError::Gone) if start != LogStart::Now => start = LogStart::Now,
            Err(error) => {
                warn!(database = %database.name, %error, "the log of changes cannot be read");
                database
                    .stream
                    .send_modify(|state| state.problem = Some(problem(error)));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

fn problem(error: LogError) -> Problem {
    match error {
        LogError::NotAllowed { reason, remedy } => Problem::NotAllowed { reason, remedy },
        LogError::TimedOut { what, limit } => Problem::TimedOut { what, limit },
        error => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            Problem::Other(source.unwrap_or_else(|| error.to_string()))
        }
    }
}

/// Reads a stream until it breaks.
async fn read(database: &Arc<Database>, stream: Box<dyn LogStream>, goes_on: bool) -> LogError {
    let start = stream.start();
    database.begin(stream.identity(), start, goes_on);
    let mut reader = Reader {
        database: database.clone(),
        stream,
        assembler: Assembler::default(),
        types: Arc::default(),
        // What was handed out before the last stream broke comes again with its transaction.
        seen: if goes_on {
            database.head()
        } else {
            Place::default()
        },
        checked: HashMap::new(),
    };
    if let Err(error) = recapture(database).await {
        return error;
    }
    database.advance(start);
    database.stream.send_modify(|state| {
        state.live = true;
        state.problem = None;
    });
    loop {
        if let Err(error) = reader.step().await {
            return error;
        }
    }
}

/// Sees to it that what was captured still is: while there was no stream, another node may have
/// let go of it. What was missed is told when the stream has come past it.
async fn recapture(database: &Database) -> Result<(), LogError> {
    let _alone = database.capturing.write().await;
    let known: Vec<Capture> = database.captures.lock().values().copied().collect();
    for known in known {
        let relation = known.demand.relation;
        match recapture::renew(database, known, known.demand).await {
            Ok(_) => {}
            Err(error @ (LogError::Unavailable(_) | LogError::Internal(_) | LogError::Gone)) => {
                return Err(error);
            }
            // The next look captures it anew.
            Err(LogError::TimedOut { .. }) => database.lose(relation, known.captured.since),
            // The next check of its subscriptions finds that there is no table.
            Err(LogError::NoTable) => drop(database.captures.lock().remove(&relation)),
            Err(error @ (LogError::Unsupported(_) | LogError::NotAllowed { .. })) => {
                standing::give_up(database, relation, &error);
            }
        }
    }
    Ok(())
}

struct Reader {
    database: Arc<Database>,
    stream: Box<dyn LogStream>,
    assembler: Assembler,
    /// The types as they were last seen.
    types: Arc<HashMap<u32, Type>>,
    seen: Place,
    /// The transactions before whose changes of a table the roles of its subscribers were checked,
    /// in the batch at hand.
    checked: HashMap<u32, LogPosition>,
}

impl Reader {
    /// Takes what has come.
    async fn step(&mut self) -> Result<(), LogError> {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                next = self.stream.next(&mut batch) => {
                    next?;
                    break;
                }
                () = self.database.poke.notified() => self.stream.ask(),
                () = self.database.reopen.notified() => return Err(LogError::Gone),
            }
        }
        let mut reached = None;
        let open = self.assembler.open_commit();
        self.checked.retain(|_, commit| Some(*commit) == open);
        for message in batch {
            match message {
                LogMessage::Reached(_) if self.assembler.is_open() => {}
                LogMessage::Reached(end) => reached = Some(end),
                LogMessage::Change(bytes) => {
                    if let Some(end) = self.take(&bytes).await? {
                        reached = Some(end);
                    }
                }
            }
        }
        if let Some(reached) = reached {
            self.database.advance(reached);
            if !self.assembler.is_open() {
                self.stream.confirm(reached);
            }
        }
        if self.database.is_outrunning() {
            tokio::time::sleep(COURTESY).await;
        } else {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Everything in a batch had committed before it came, so one check is enough for all of it, and
    /// for the rest of its last transaction in the next one.
    async fn check_roles(&mut self, change: &Change) {
        let (relation, commit) = (change.shape.oid, change.place.commit);
        if let Entry::Vacant(unchecked) = self.checked.entry(relation) {
            unchecked.insert(commit);
            guard::check_roles(&self.database, relation).await;
        }
        self.checked.insert(relation, commit);
    }

    /// Takes a message; gives the end of the transaction that it ends.
    async fn take(&mut self, bytes: &bytes::Bytes) -> Result<Option<LogPosition>, LogError> {
        let types = self.database.types.lock().clone();
        if !Arc::ptr_eq(&types, &self.types) {
            self.assembler.renew(&types);
            self.types = types.clone();
        }
        let step = self.assembler.take(bytes, &types);
        match step.map_err(|error| LogError::Internal(Box::new(error)))? {
            Step::Undescribed(relation, unknown) => {
                let transaction = self.assembler.transaction();
                shown::defined(&self.database, transaction, relation.oid).await?;
                let types = type_lookup::resolve(&self.database, &unknown).await?;
                let shape = self.assembler.describe(relation, &types);
                described(&self.database, &shape).await;
            }
            Step::Described(shape) => {
                let transaction = self.assembler.transaction();
                shown::defined(&self.database, transaction, shape.oid).await?;
                described(&self.database, &shape).await;
            }
            Step::Changed(mut change) if change.place > self.seen => {
                let strange = labels::strange(&self.database, &change);
                if !strange.is_empty() {
                    shown::wait(&self.database, change.transaction).await?;
                    let (database, assembler) = (&self.database, &mut self.assembler);
                    labels::learn(database, assembler, strange, &mut change).await?;
                    self.database.reshape(&change.shape);
                }
                self.check_roles(&change).await;
                self.database.dispatch(change);
            }
            Step::Nothing | Step::Changed(_) => {}
            Step::Truncated(changes) => {
                for change in changes {
                    if change.place > self.seen {
                        self.database.dispatch(change);
                    }
                }
            }
            Step::Committed(end) => return Ok(Some(end)),
        }
        Ok(None)
    }
}

/// A table is like this from here on. PostgreSQL describes it again after whatever touched it, its
/// policies too, so nobody is shown what is behind before rights and policies were read again.
async fn described(database: &Database, shape: &Arc<Shape>) {
    if let Some(primary) = guard::touched(database, shape.oid).await {
        shape.learn_primary(primary);
    }
    database.reshape(shape);
}
