//! One subscription, and how a change is evaluated for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_sql::Login;
use tracing::warn;

use crate::access::member_rule::MemberRule;
use crate::access::privileges::Privileges;
use crate::access::rls::RlsEvaluator;
use crate::decode::change::{ChangeKind, Row, RowChange};
use crate::decode::schema::RelationSchema;
use crate::dispatch::encoder::{EncodeError, EncodedRow, RowEncoder};
use crate::dispatch::predicate::{BoundPredicate, Equality, Predicate};
use crate::dispatch::queue::{EventSender, PushError};
use crate::event::cursor::Cursor;
use crate::event::item::{Delivery, Ended, Item, Resync};
use crate::event::operation::{Operation, Operations};
use crate::event::selection::Selection;
use crate::metrics::FeedMetrics;

#[derive(Debug)]
pub(crate) struct Subscriber {
    /// A number that identifies the subscription in the feed of its database.
    pub(crate) id: u64,
    /// The number that identifies the subscription within its connection; see
    /// [`crate::SubscribeRequest::tag`].
    pub(crate) tag: u64,
    pub(crate) login: Login,
    pub(crate) relation: u32,
    /// The schema and the name of the table at the start of the subscription.
    pub(crate) name: (Box<str>, Box<str>),
    pub(crate) operations: Operations,
    pub(crate) selection: Arc<Selection>,
    pub(crate) predicate: Option<Predicate>,
    /// The names of the columns that events contain or that the filter uses.
    pub(crate) columns: Vec<Box<str>>,
    /// Whether whole old rows are captured for the subscription.
    pub(crate) old_rows: bool,
    pub(crate) sender: EventSender,
    pub(crate) metrics: Arc<FeedMetrics>,
    /// The evaluator of policies; `None` if row level security does not apply to the role, or if
    /// `rule` replaces the evaluation.
    pub(crate) rls: Option<Arc<RlsEvaluator>>,
    /// Says which rows the policies show to a member; `None` if no policies apply, or if PostgreSQL
    /// has to evaluate the policies.
    pub(crate) rule: Option<MemberRule>,
    /// The privileges as they were most recently read.
    pub(crate) privileges: Mutex<Arc<Privileges>>,
    pub(crate) ended: AtomicBool,
    /// The value of the table's `change_count` at the last change that the live reader pushed to
    /// this subscription.
    pub(crate) last_pushed: AtomicU64,
}

impl Subscriber {
    /// Whether the subscription has ended or the queue of its connection was closed. Nothing more
    /// is delivered afterwards.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire) || self.sender.is_closed()
    }

    /// Whether row level security decides which rows the subscription gets.
    pub(crate) fn is_under_policies(&self) -> bool {
        self.rls.is_some() || self.rule.is_some()
    }

    /// Whether the subscription's privileges and policies were read when its table had this
    /// fingerprint.
    pub(crate) async fn has_current_policies(&self, fingerprint: &str) -> bool {
        let is_current = *self.privileges.lock().fingerprint == *fingerprint;
        match &self.rls {
            Some(rls) => is_current && rls.has_fingerprint(fingerprint).await,
            None => is_current,
        }
    }

    /// Whether the subscription's role has changed and its privileges may therefore be outdated.
    /// `role_fingerprint` is the current fingerprint of the role; `None` if the role does not exist
    /// or its fingerprint could not be read.
    pub(crate) fn has_stale_role(&self, role_fingerprint: Option<&str>) -> bool {
        let privileges = self.privileges.lock();
        privileges.depends_on_roles && Some(&*privileges.role_fingerprint) != role_fingerprint
    }

    /// Replaces the privileges, unless the stored privileges were queried later than `privileges`.
    pub(crate) fn update_privileges(&self, privileges: &Arc<Privileges>) {
        let mut known = self.privileges.lock();
        if known.queried_at <= privileges.queried_at {
            *known = privileges.clone();
        }
    }

    /// Ends the subscription, and delivers the reason. Further calls have no effect.
    pub(crate) fn end(&self, why: Ended) {
        if !self.ended.swap(true, Ordering::AcqRel) {
            self.push_unbounded(Item::Ended(why));
        }
    }

    /// Pushes an item to the connection's queue. Fails as [`EventSender::push`] does.
    pub(crate) fn push(&self, item: Item) -> Result<(), PushError> {
        let counter = self.counter(&item);
        self.sender.push(self.delivery(item))?;
        counter.into_iter().for_each(FeedMetrics::count);
        Ok(())
    }

    /// Pushes an item even if the queue is full.
    pub(crate) fn push_unbounded(&self, item: Item) {
        self.counter(&item).into_iter().for_each(FeedMetrics::count);
        self.sender.push_unbounded(self.delivery(item));
    }

    /// Closes the queue of the connection, because its client does not read.
    pub(crate) fn close_slow(&self) {
        if self.sender.close_slow(self.tag) {
            FeedMetrics::count(&self.metrics.slow_consumers);
        }
    }

    fn counter(&self, item: &Item) -> Option<&AtomicU64> {
        match item {
            Item::Event { .. } => Some(&self.metrics.events),
            Item::Resync { .. } => Some(&self.metrics.resyncs),
            Item::Acknowledged { .. } | Item::Ended(_) => None,
        }
    }

    fn delivery(&self, item: Item) -> Delivery {
        Delivery {
            subscription: self.tag,
            item,
        }
    }

    /// An equality that the filter requires; `None` if there is no filter, or none of its
    /// equalities can be indexed.
    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.predicate.as_ref()?.equality()
    }

    /// The reason why the subscription must end if its table now has this schema and name; `None`
    /// if they have not changed.
    pub(crate) fn renamed(&self, schema: &str, name: &str) -> Option<Ended> {
        let (old_schema, old_name) = &self.name;
        let is_renamed = (&**old_schema, &**old_name) != (schema, name);
        is_renamed.then(|| Ended::Changed {
            problem: format!("the table was renamed to {schema}.{name}"),
        })
    }

    /// Binds the filter to a schema. Returns `None` if the subscription has no filter.
    ///
    /// # Errors
    ///
    /// If the table was renamed, or the filter does not fit the schema.
    pub(crate) fn bind_predicate(
        &self,
        schema: &RelationSchema,
    ) -> Result<Option<Arc<BoundPredicate>>, Ended> {
        if let Some(ended) = self.renamed(&schema.schema_name, &schema.name) {
            return Err(ended);
        }
        let Some(predicate) = &self.predicate else {
            return Ok(None);
        };
        let predicate = predicate.bind(schema).map(Arc::new);
        predicate
            .map(Some)
            .map_err(|problem| Ended::Changed { problem })
    }

    /// Binds the filter and the selection to a schema. The returned binding has its own encoder,
    /// which is not shared with other subscriptions.
    ///
    /// # Errors
    ///
    /// If the subscription does not fit the schema.
    pub(crate) fn bind(&self, schema: &RelationSchema) -> Result<SchemaBinding, Ended> {
        let encoder =
            RowEncoder::new(&self.selection, schema).map_err(|error| schema_mismatch(&error))?;
        Ok(SchemaBinding {
            generation: schema.generation,
            encoder,
            predicate: self.bind_predicate(schema)?,
        })
    }
}

/// Describes for the client why a selection does not fit a schema.
pub(crate) fn schema_mismatch(error: &EncodeError) -> Ended {
    let problem = match error {
        EncodeError::NoColumn(name) => format!("the column `{name}` was dropped or renamed"),
        EncodeError::KeyNotSelected => "the primary key of the table has changed".to_owned(),
        EncodeError::Absent | EncodeError::Malformed => "a value cannot be encoded".to_owned(),
    };
    Ended::Changed { problem }
}

/// A subscription bound to one schema.
pub(crate) struct SchemaBinding {
    pub(crate) generation: u64,
    encoder: RowEncoder,
    predicate: Option<Arc<BoundPredicate>>,
}

/// The meaning of a change for a subscription: nothing, an event, or a gap.
#[derive(Debug)]
pub(crate) enum ChangeOutcome {
    Nothing,
    Event(Operation, EncodedRow),
    Gap(Resync),
}

impl ChangeOutcome {
    /// The item to deliver; `None` for [`ChangeOutcome::Nothing`].
    pub(crate) fn item(self, cursor: Cursor) -> Option<Item> {
        match self {
            Self::Nothing => None,
            Self::Event(
                operation,
                EncodedRow {
                    row,
                    field_errors,
                    key,
                },
            ) => Some(Item::Event {
                cursor,
                operation,
                row,
                field_errors,
                key,
            }),
            Self::Gap(reason) => Some(Item::Resync { cursor, reason }),
        }
    }
}

impl SchemaBinding {
    /// Evaluates a change for the subscription. A TRUNCATE, or a value that is missing in the
    /// change log, leads to a gap.
    pub(crate) fn evaluate(&self, operations: Operations, change: &RowChange) -> ChangeOutcome {
        let (operation, tuple) = match &change.kind {
            ChangeKind::Truncated => return ChangeOutcome::Gap(Resync::Truncated),
            ChangeKind::Row(operation, _) if !operations.has(*operation) => {
                return ChangeOutcome::Nothing;
            }
            ChangeKind::Row(operation, tuple) => (*operation, tuple),
        };
        let row = Row {
            schema: &change.schema,
            tuple,
        };
        match passes(self.predicate.as_deref(), row) {
            Some(false) => ChangeOutcome::Nothing,
            None => ChangeOutcome::Gap(Resync::Incomplete),
            Some(true) => match self.encoder.encode(row) {
                Ok(row) => ChangeOutcome::Event(operation, row),
                Err(error) => unencodable(&error, &change.schema),
            },
        }
    }
}

/// Whether a row passes the filter. Without a filter every row passes. `None` if the result depends
/// on a value that is missing or malformed.
pub(crate) fn passes(predicate: Option<&BoundPredicate>, row: Row<'_>) -> Option<bool> {
    predicate.map_or(Some(true), |predicate| predicate.passes(row))
}

/// The outcome for a row that cannot be encoded: a gap. A malformed value is logged.
pub(crate) fn unencodable(error: &EncodeError, schema: &RelationSchema) -> ChangeOutcome {
    if *error == EncodeError::Malformed {
        warn!(schema = %schema.schema_name, table = %schema.name, "event not delivered: a value in the log is malformed");
    }
    ChangeOutcome::Gap(Resync::Incomplete)
}
