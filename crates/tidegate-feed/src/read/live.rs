//! Reads the stream of changes of a database, dispatches the changes, and opens the stream again
//! when it breaks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_changelog::{LogError, LogMessage, LogPosition, LogStart, LogStream};
use tidegate_values::Type;
use tracing::{info, warn};

use crate::capture::{health, recapture};
use crate::database::captures::TableCapture;
use crate::database::database_feed::DatabaseFeed;
use crate::database::stream_progress::StreamProblem;
use crate::decode::change::RowChange;
use crate::decode::decoder::{ChangeDecoder, Decoded};
use crate::decode::enum_labels;
use crate::decode::schema::RelationSchema;
use crate::event::cursor::EventPosition;
use crate::read::role_checks::RoleChecks;
use crate::read::{commit_visibility, lagging};
use crate::watch::recheck;

/// The first and the longest pause between two attempts to open a stream.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(15));
/// How long the live reader waits after each batch while the ring may soon drop changes that
/// lagging or replaying clients have not read yet.
const READER_PAUSE: Duration = Duration::from_millis(5);

/// Reads one stream after the other until the task is aborted. The first stream starts at `first`.
pub(crate) async fn run(database: Arc<DatabaseFeed>, first: LogStart) {
    let mut start = first;
    let mut pause = PAUSE.0;
    loop {
        match database.log.open(&database.name, start).await {
            Ok(stream) => {
                let continues = matches!(start, LogStart::At { .. });
                let error = read(&database, stream, continues).await;
                let was_live = database.stream.is_live();
                database.stream.update(|state| state.live = false);
                info!(database = %database.name, %error, "change stream ended");
                if was_live {
                    pause = PAUSE.0;
                } else {
                    database.stream.pause(pause).await;
                    pause = (pause * 2).min(PAUSE.1);
                }
                start = match error {
                    LogError::Gone => LogStart::Now,
                    _ => LogStart::At {
                        log: database.hub.log_identity(),
                        position: database.stream.reached(),
                    },
                };
            }
            // The change log does not reach back to the start, so the stream starts at the end of
            // the log, and a gap is reported.
            Err(LogError::Gone) if start != LogStart::Now => start = LogStart::Now,
            Err(error) => {
                warn!(database = %database.name, %error, "could not open the change stream; will retry");
                let problem = problem(error);
                database
                    .stream
                    .update(|state| state.problem = Some(problem));
                database.stream.pause(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

fn problem(error: LogError) -> StreamProblem {
    match error {
        LogError::NotAllowed { reason, remedy } => StreamProblem::NotAllowed { reason, remedy },
        LogError::TimedOut { what, limit } => StreamProblem::TimedOut { what, limit },
        error => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            StreamProblem::Other(source.unwrap_or_else(|| error.to_string()))
        }
    }
}

/// Reads a stream until it breaks. Returns the error that broke it. `continues` is true if the
/// stream starts at the position at which the stream before it ended.
async fn read(
    database: &Arc<DatabaseFeed>,
    stream: Box<dyn LogStream>,
    continues: bool,
) -> LogError {
    let start = stream.start();
    database.stream_opened(stream.lineage(), start, continues);
    let mut reader = LiveReader {
        database: database.clone(),
        stream,
        decoder: ChangeDecoder::default(),
        types: Arc::default(),
        // A stream begins at the start of a transaction. Changes of this transaction that were
        // already dispatched before the previous stream broke are skipped.
        dispatched: if continues {
            database.hub.head()
        } else {
            EventPosition::default()
        },
        role_checks: RoleChecks::default(),
    };
    if let Err(error) = recapture_all(database).await {
        return error;
    }
    database.advance(start);
    database.stream.update(|state| {
        state.live = true;
        state.problem = None;
    });
    loop {
        if let Err(error) = reader.step().await {
            return error;
        }
    }
}

/// Captures all known tables again, because another node may have released them while this node had
/// no stream. Gaps are recorded, and reported when the stream has reached them.
async fn recapture_all(database: &DatabaseFeed) -> Result<(), LogError> {
    let _exclusive = database.captures.lock.write().await;
    let captures: Vec<TableCapture> = database.captures.all().into_values().collect();
    for known in captures {
        let relation = known.demand.relation;
        match recapture::recapture_table(database, known, known.demand).await {
            Ok(_) => {}
            Err(error @ (LogError::Unavailable(_) | LogError::Internal(_) | LogError::Gone)) => {
                return Err(error);
            }
            // After the next poll of the catalog, the stale table is captured again.
            Err(LogError::TimedOut { .. }) => {
                database.captures.mark_stale(relation, known.captured.since);
            }
            // The table was dropped. The next check of privileges ends its subscriptions.
            Err(LogError::NoTable) => database.captures.remove(relation),
            Err(error @ (LogError::Unsupported(_) | LogError::NotAllowed { .. })) => {
                health::stop_capture(database, relation, &error);
            }
        }
    }
    Ok(())
}

struct LiveReader {
    database: Arc<DatabaseFeed>,
    stream: Box<dyn LogStream>,
    decoder: ChangeDecoder,
    /// The map of types with which the decoder's schemas were most recently refreshed.
    types: Arc<HashMap<u32, Type>>,
    /// Changes up to this position were already dispatched by the previous stream, and are skipped.
    dispatched: EventPosition,
    role_checks: RoleChecks,
}

impl LiveReader {
    /// Waits for the next batch of messages and processes it.
    async fn step(&mut self) -> Result<(), LogError> {
        let mut batch = Vec::new();
        loop {
            // `next` is cancel safe: if its future is dropped, no message is lost.
            tokio::select! {
                biased;
                next = self.stream.next(&mut batch) => {
                    next?;
                    break;
                }
                () = self.database.stream.progress_request.notified() => self.stream.request_position(),
                () = self.database.stream.reopen_request.notified() => return Err(LogError::Gone),
            }
        }
        let mut reached = None;
        self.role_checks.begin_batch(self.decoder.open_commit());
        for message in batch {
            match message {
                // While a transaction is open, no position may be confirmed. Otherwise the next
                // stream would begin after the transaction.
                LogMessage::Reached(_) if self.decoder.is_open() => {}
                LogMessage::Reached(end) => reached = Some(end),
                LogMessage::Change(bytes) => {
                    if let Some(end) = self.process(&bytes).await? {
                        reached = Some(end);
                    }
                }
            }
        }
        if let Some(reached) = reached {
            self.database.advance(reached);
            if !self.decoder.is_open() {
                self.stream.confirm(reached);
            }
        }
        // If readers that make progress are far behind, the stream waits a few milliseconds for
        // them after each batch. Otherwise it only lets other tasks run.
        if self.database.hub.is_outrunning_readers() {
            tokio::time::sleep(READER_PAUSE).await;
        } else {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Checks the roles of the subscriptions to a changed table, if this is necessary.
    async fn check_roles(&mut self, change: &RowChange) {
        let (relation, commit) = (change.schema.oid, change.position.commit);
        if self.role_checks.need_check(relation, commit) {
            recheck::check_roles(&self.database, relation).await;
        }
    }

    /// Processes a message. Returns the position after the transaction if the message is a commit.
    async fn process(&mut self, bytes: &bytes::Bytes) -> Result<Option<LogPosition>, LogError> {
        let types = self.database.types.current();
        if !Arc::ptr_eq(&types, &self.types) {
            self.decoder.refresh_types(&types);
            self.types = types.clone();
        }
        let decoded = self.decoder.decode(bytes, &types);
        match decoded.map_err(|error| LogError::Internal(Box::new(error)))? {
            Decoded::Undescribed(relation, unknown) => {
                self.wait_for_definition(relation.oid).await?;
                let catalog = &self.database.catalog;
                let types = self.database.types.resolve(catalog, &unknown).await?;
                let schema = self.decoder.describe(relation, &types);
                apply_definition(&self.database, &schema).await;
            }
            Decoded::Described(schema) => {
                self.wait_for_definition(schema.oid).await?;
                apply_definition(&self.database, &schema).await;
            }
            Decoded::Changed(mut change) if change.position > self.dispatched => {
                self.refresh_labels(&mut change).await?;
                self.check_roles(&change).await;
                self.dispatch(change);
            }
            Decoded::Nothing | Decoded::Changed(_) => {}
            Decoded::Truncated(changes) => {
                for change in changes {
                    if change.position > self.dispatched {
                        self.dispatch(change);
                    }
                }
            }
            Decoded::Committed(end) => return Ok(Some(end)),
        }
        Ok(None)
    }

    async fn wait_for_definition(&mut self, relation: u32) -> Result<(), LogError> {
        let (catalog, transaction) = (&self.database.catalog, self.decoder.transaction_id());
        commit_visibility::wait_for_definition(catalog, transaction, relation).await
    }

    /// Reads the labels of enums again if a change has an unknown label.
    async fn refresh_labels(&mut self, change: &mut RowChange) -> Result<(), LogError> {
        let (catalog, types) = (&self.database.catalog, &self.database.types);
        let unknown = enum_labels::unknown(types, change);
        if unknown.is_empty() {
            return Ok(());
        }
        // The transaction of the change may have added the label, so it must be visible to the
        // query.
        commit_visibility::wait(catalog, change.transaction_id).await?;
        enum_labels::refresh(catalog, types, &mut self.decoder, unknown, change).await?;
        self.database.hub.set_schema(&change.schema);
        Ok(())
    }

    fn dispatch(&self, change: RowChange) {
        let hub = &self.database.hub;
        for connection in hub.dispatch(change) {
            lagging::spawn(hub.clone(), connection);
        }
    }
}

/// Applies the description of a table. PostgreSQL describes a table again after every change of its
/// definition or its policies. Therefore this function reads privileges and policies again, before
/// any later change is dispatched.
async fn apply_definition(database: &DatabaseFeed, schema: &Arc<RelationSchema>) {
    if let Some(primary_key) = recheck::table_redefined(database, schema.oid).await {
        schema.set_primary_key(primary_key);
    }
    database.hub.set_schema(schema);
}
