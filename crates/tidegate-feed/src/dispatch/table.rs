//! The subscriptions to one table.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_changelog::LogIdentity;
use tidegate_sql::RoleName;
use tokio::sync::Notify;

use crate::decode::change::{ChangeKind, Row, RowChange};
use crate::decode::schema::RelationSchema;
use crate::dispatch::encoder::{EncodeError, EncodedRow, RowEncoder};
use crate::dispatch::index::{Index, IndexedSubscriber};
use crate::dispatch::queue::PushError;
use crate::dispatch::subscriber::{
    ChangeOutcome, Subscriber, passes, schema_mismatch, unencodable,
};
use crate::event::cursor::{Cursor, EventPosition};
use crate::event::item::{Ended, Resync};
use crate::event::operation::Operation;
use crate::event::selection::Selection;

/// The subscriptions to a table. Dispatches the changes of the table to the live subscriptions.
#[derive(Default)]
pub(crate) struct TableSubscribers {
    /// The schema for the next changes; `None` if it is unknown.
    schema: Option<Arc<RelationSchema>>,
    /// The live subscriptions, by id.
    live: HashMap<u64, Arc<Subscriber>>,
    /// The live subscriptions to each [`Operation`], in the order of its variants.
    by_operation: [Index; 3],
    encoders: Vec<SharedEncoder>,
    /// The ids of the subscriptions that lag, each with the notification that wakes the reader of
    /// its connection.
    lagging: Vec<(u64, Arc<Notify>)>,
    /// The number of dispatched changes of the table, which identifies the most recent change.
    change_count: u64,
    /// The position of the table's most recent change. For a table that was just added, it is a
    /// position after which the table has not changed.
    pub(crate) last_change: EventPosition,
    /// The cached result of [`crate::dispatch::hub::Hub::roles_to_check`]; `None` if it must be
    /// computed.
    pub(crate) roles: Option<Arc<[RoleName]>>,
    /// The lower 32 bits of the ids of the most recent transactions that truncated the table, the
    /// newest first.
    pub(crate) truncations: VecDeque<u32>,
}

/// The maximum number of entries in `truncations`.
const MAX_TRUNCATIONS: usize = 64;

/// An encoder that subscriptions with equal selections share.
struct SharedEncoder {
    selection: Arc<Selection>,
    /// How many live subscriptions use the encoder. If the number is 0, another encoder may take
    /// the place in [`TableSubscribers::encoders`].
    users: usize,
    /// The encoder; `None` while the schema of the table is unknown.
    encoder: Option<RowEncoder>,
}

/// A row that was encoded for one subscription and is cached for others; `None` if it was not
/// encoded yet.
type CachedRow = Option<Result<EncodedRow, EncodeError>>;

impl TableSubscribers {
    /// A table without subscriptions.
    pub(crate) fn new(last_change: EventPosition) -> Self {
        Self {
            last_change,
            ..Self::default()
        }
    }

    /// Adds a live subscription, which gets every change from now on.
    ///
    /// # Errors
    ///
    /// If the subscription does not fit the schema of the table.
    pub(crate) fn insert(&mut self, subscriber: Arc<Subscriber>) -> Result<(), Ended> {
        let schema = self.schema.clone();
        let encoder = self.encoder_for(&subscriber.selection)?;
        let predicate = match &schema {
            Some(schema) => subscriber.bind_predicate(schema)?,
            None => None,
        };
        self.encoders[encoder].users += 1;
        let live = IndexedSubscriber {
            subscriber: subscriber.clone(),
            predicate,
            encoder,
        };
        for operation in subscriber.operations.iter() {
            self.by_operation[operation as usize].insert(&live, schema.as_deref());
        }
        self.live.insert(subscriber.id, subscriber);
        Ok(())
    }

    /// The index in `encoders` of the encoder for a selection. Adds an encoder if there is none.
    /// Fails if the selection does not fit the schema.
    fn encoder_for(&mut self, selection: &Arc<Selection>) -> Result<usize, Ended> {
        let is_same =
            |encoder: &SharedEncoder| encoder.users > 0 && encoder.selection == *selection;
        if let Some(at) = self.encoders.iter().position(is_same) {
            return Ok(at);
        }
        let encoder = match &self.schema {
            Some(schema) => {
                Some(RowEncoder::new(selection, schema).map_err(|error| schema_mismatch(&error))?)
            }
            None => None,
        };
        let encoder = SharedEncoder {
            selection: selection.clone(),
            users: 0,
            encoder,
        };
        let free = self.encoders.iter().position(|encoder| encoder.users == 0);
        match free {
            Some(at) => self.encoders[at] = encoder,
            None => self.encoders.push(encoder),
        }
        Ok(free.unwrap_or(self.encoders.len() - 1))
    }

    /// Registers `wake` for a subscription whose connection lags. `wake` is notified at each change
    /// of the table.
    pub(crate) fn add_lagging(&mut self, id: u64, wake: Arc<Notify>) {
        self.lagging.push((id, wake));
    }

    /// Undoes [`Self::add_lagging`].
    pub(crate) fn remove_lagging(&mut self, id: u64) {
        self.lagging.retain(|(lagging_id, _)| *lagging_id != id);
    }

    /// Whether the live reader has pushed the table's most recent change to a subscription.
    pub(crate) fn has_received_last_change(&self, subscriber: &Subscriber) -> bool {
        subscriber.last_pushed.load(Ordering::Relaxed) == self.change_count
    }

    /// Whether a subscription fits the current schema. Without a schema every subscription fits.
    pub(crate) fn fits(&self, subscriber: &Subscriber) -> bool {
        self.schema
            .as_ref()
            .is_none_or(|schema| subscriber.bind(schema).is_ok())
    }

    /// Removes the schema. The change log describes the table again before its next change.
    pub(crate) fn forget_schema(&mut self) {
        self.schema = None;
    }

    /// Removes a live subscription.
    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        if self.live.remove(&subscriber.id).is_none() {
            return;
        }
        for operation in subscriber.operations.iter() {
            self.by_operation[operation as usize].remove(subscriber);
        }
        let is_same = |encoder: &&mut SharedEncoder| {
            encoder.users > 0 && encoder.selection == subscriber.selection
        };
        if let Some(encoder) = self.encoders.iter_mut().find(is_same) {
            encoder.users -= 1;
        }
    }

    /// Sets the schema that the table has for the next changes. Binds the live subscriptions to
    /// this schema, and ends those that do not fit it.
    pub(crate) fn set_schema(&mut self, schema: &Arc<RelationSchema>) {
        if self
            .schema
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, schema))
        {
            return;
        }
        let before = self.schema.replace(schema.clone());
        // PostgreSQL may describe a table again even if no property that subscriptions use has
        // changed.
        if before.is_some_and(|before| before.looks_like(schema)) {
            return;
        }
        self.encoders.clear();
        self.by_operation = Default::default();
        for (_, subscriber) in std::mem::take(&mut self.live) {
            if subscriber.is_ended() {
                continue;
            }
            if let Err(why) = self.insert(subscriber.clone()) {
                subscriber.end(why);
            }
        }
    }

    /// Pushes a change to the live subscriptions that get it, and wakes the readers of lagging
    /// subscriptions. Removes live subscriptions that have ended or whose queues are closed.
    /// Returns the live subscriptions whose queues are full. The calling function must make their
    /// connections lag from this change on.
    pub(crate) fn dispatch(
        &mut self,
        change: &RowChange,
        log: LogIdentity,
    ) -> Vec<Arc<Subscriber>> {
        let mut queue_full = Vec::new();
        let mut closed = Vec::new();
        let cursor = Cursor::new(log, change.position);
        self.change_count += 1;
        let change_count = self.change_count;
        let mut push = |subscriber: &Arc<Subscriber>, outcome: ChangeOutcome| {
            let Some(item) = outcome.item(cursor) else {
                return;
            };
            // The index may visit a subscription more than once, but the change is pushed only
            // once.
            if subscriber.last_pushed.load(Ordering::Relaxed) == change_count {
                return;
            }
            if subscriber.is_ended() {
                closed.push(subscriber.clone());
                return;
            }
            match subscriber.push(item) {
                Ok(()) => subscriber
                    .last_pushed
                    .store(change_count, Ordering::Relaxed),
                Err(PushError::Full) => queue_full.push(subscriber.clone()),
                Err(PushError::Closed) => closed.push(subscriber.clone()),
            }
        };
        match &change.kind {
            ChangeKind::Truncated => {
                self.truncations.truncate(MAX_TRUNCATIONS - 1);
                self.truncations.push_front(change.transaction_id);
                for subscriber in self.live.values() {
                    push(subscriber, ChangeOutcome::Gap(Resync::Truncated));
                }
            }
            ChangeKind::Row(operation, tuple) => {
                let row = Row {
                    schema: &change.schema,
                    tuple,
                };
                self.push_row(*operation, row, &mut push);
            }
        }
        for subscriber in &closed {
            self.remove(subscriber);
        }
        for (_, wake) in &self.lagging {
            wake.notify_one();
        }
        queue_full
    }

    /// Filters and encodes a row for the live subscriptions. Each encoder runs at most once.
    fn push_row(
        &self,
        operation: Operation,
        row: Row<'_>,
        push: &mut dyn FnMut(&Arc<Subscriber>, ChangeOutcome),
    ) {
        let mut rows: Vec<CachedRow> = Vec::new();
        self.by_operation[operation as usize].for_each_candidate(row, &mut |live| {
            let outcome = match passes(live.predicate.as_deref(), row) {
                Some(false) => return,
                None => ChangeOutcome::Gap(Resync::Incomplete),
                Some(true) => {
                    if rows.is_empty() {
                        rows.resize_with(self.encoders.len(), || None);
                    }
                    let encoded = rows[live.encoder].get_or_insert_with(|| {
                        let encoder = self.encoders[live.encoder].encoder.as_ref();
                        encoder.ok_or(EncodeError::Absent)?.encode(row)
                    });
                    match encoded {
                        Ok(row) => ChangeOutcome::Event(operation, row.clone()),
                        Err(error) => unencodable(error, row.schema),
                    }
                }
            };
            push(&live.subscriber, outcome);
        });
    }
}
