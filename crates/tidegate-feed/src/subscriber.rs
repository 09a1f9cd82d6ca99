//! One subscription, and what a change means to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidegate_sql::Login;
use tracing::warn;

use crate::change::{Change, Event, Operation, Operations, Row};
use crate::cursor::Cursor;
use crate::meter::Meter;
use crate::policy::Judge;
use crate::predicate::{Equality, Placed, Predicate};
use crate::queue::{Delivery, Ended, Item, Outbox, Refused, Resync};
use crate::rights::Rights;
use crate::selection::{Encoder, Image, Selection, Unshowable};
use crate::shape::Shape;

/// A subscription.
#[derive(Debug)]
pub(crate) struct Subscriber {
    /// Its number on this node.
    pub(crate) id: u64,
    /// What its connection calls it.
    pub(crate) tag: u64,
    pub(crate) login: Login,
    pub(crate) relation: u32,
    /// The schema and the name of its table, by which its connection knows it.
    pub(crate) name: (Box<str>, Box<str>),
    pub(crate) operations: Operations,
    pub(crate) selection: Arc<Selection>,
    pub(crate) predicate: Option<Predicate>,
    /// Every column that it shows or looks at.
    pub(crate) columns: Vec<Box<str>>,
    /// Whether old rows are captured as a whole for it.
    pub(crate) old_rows: bool,
    pub(crate) outbox: Outbox,
    pub(crate) meter: Arc<Meter>,
    /// Who decides which rows the role may see, where row level security applies.
    pub(crate) judge: Option<Arc<Judge>>,
    /// The rights that it was last checked by.
    pub(crate) rights: Mutex<Arc<Rights>>,
    pub(crate) over: AtomicBool,
    /// The last of its table's changes that was pushed to it when it came, by the table's count.
    pub(crate) turn: AtomicU64,
}

impl Subscriber {
    /// Whether nothing may be delivered any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.outbox.is_closed()
    }

    /// Whether its rights, and the policies of its role, were read when its table had this stamp.
    pub(crate) async fn is_checked(&self, stamp: &str) -> bool {
        let checked = *self.rights.lock().stamp == *stamp;
        match &self.judge {
            Some(judge) => checked && judge.is_of(stamp).await,
            None => checked,
        }
    }

    /// Whether its rights may have changed with its role, which has this stamp now.
    pub(crate) fn is_stale(&self, role_stamp: Option<&str>) -> bool {
        let rights = self.rights.lock();
        rights.depends_on_roles && Some(&*rights.role_stamp) != role_stamp
    }

    /// Takes rights, unless those that it has were asked for later.
    pub(crate) fn renew(&self, rights: &Arc<Rights>) {
        let mut known = self.rights.lock();
        if known.asked <= rights.asked {
            *known = rights.clone();
        }
    }

    /// Ends the subscription, once.
    pub(crate) fn end(&self, why: Ended) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.tell(Item::Ended(why));
        }
    }

    /// Adds something to the connection's queue, if there is room.
    pub(crate) fn push(&self, item: Item) -> Result<(), Refused> {
        let counter = self.counter(&item);
        self.outbox.push(self.delivery(item))?;
        counter.into_iter().for_each(Meter::count);
        Ok(())
    }

    /// Adds what must be told however full the queue is.
    pub(crate) fn tell(&self, item: Item) {
        self.counter(&item).into_iter().for_each(Meter::count);
        self.outbox.tell(self.delivery(item));
    }

    /// Cuts the connection, which does not read.
    pub(crate) fn cut(&self) {
        if self.outbox.cut(self.tag) {
            Meter::count(&self.meter.cut);
        }
    }

    fn counter(&self, item: &Item) -> Option<&AtomicU64> {
        match item {
            Item::Event { .. } => Some(&self.meter.events),
            Item::Resync { .. } => Some(&self.meter.resyncs),
            Item::Acknowledged { .. } | Item::Ended(_) => None,
        }
    }

    fn delivery(&self, item: Item) -> Delivery {
        Delivery {
            subscription: self.tag,
            item,
        }
    }

    /// What it compares for equality, if it does.
    pub(crate) fn equality(&self) -> Option<&Arc<Equality>> {
        self.predicate.as_ref()?.equality()
    }

    /// Readies the filter for a shape.
    pub(crate) fn place(&self, shape: &Shape) -> Result<Option<Arc<Placed>>, Ended> {
        let (schema, name) = &self.name;
        if (schema, name) != (&shape.schema, &shape.name) {
            let problem = format!("it is called {}.{} now", shape.schema, shape.name);
            return Err(Ended::Changed { problem });
        }
        let Some(predicate) = &self.predicate else {
            return Ok(None);
        };
        let placed = predicate.place(shape).map(Arc::new);
        placed
            .map(Some)
            .map_err(|problem| Ended::Changed { problem })
    }

    /// Readies the subscription for a shape, on its own.
    pub(crate) fn bind(&self, shape: &Shape) -> Result<Bound, Ended> {
        let encoder = Encoder::new(&self.selection, shape).map_err(|error| changed(&error))?;
        Ok(Bound {
            generation: shape.generation,
            encoder,
            placed: self.place(shape)?,
        })
    }
}

/// Why a selection does not fit a shape.
pub(crate) fn changed(error: &Unshowable) -> Ended {
    let problem = match error {
        Unshowable::NoColumn(name) => format!("the column `{name}` is gone"),
        Unshowable::OtherKey => "its primary key is another one".to_owned(),
        Unshowable::Absent | Unshowable::Malformed => "a value cannot be shown".to_owned(),
    };
    Ended::Changed { problem }
}

/// A subscription for one shape.
pub(crate) struct Bound {
    pub(crate) generation: u64,
    encoder: Encoder,
    placed: Option<Arc<Placed>>,
}

/// What a change means to a subscription.
#[derive(Debug)]
pub(crate) enum Outcome {
    Nothing,
    Event(Operation, Image),
    Gap(Resync),
}

impl Outcome {
    /// What is told of it.
    pub(crate) fn item(self, cursor: Cursor) -> Option<Item> {
        match self {
            Self::Nothing => None,
            Self::Event(operation, Image { row, flaws, key }) => Some(Item::Event {
                cursor,
                operation,
                row,
                flaws,
                key,
            }),
            Self::Gap(reason) => Some(Item::Resync { cursor, reason }),
        }
    }
}

impl Bound {
    /// What a change means.
    pub(crate) fn judge(&self, operations: Operations, change: &Change) -> Outcome {
        let (operation, tuple) = match &change.event {
            Event::Truncated => return Outcome::Gap(Resync::Truncated),
            Event::Row(operation, _) if !operations.has(*operation) => return Outcome::Nothing,
            Event::Row(operation, tuple) => (*operation, tuple),
        };
        let row = Row {
            shape: &change.shape,
            tuple,
        };
        match passes(self.placed.as_deref(), row) {
            Some(false) => Outcome::Nothing,
            None => Outcome::Gap(Resync::Incomplete),
            Some(true) => match self.encoder.encode(row) {
                Ok(image) => Outcome::Event(operation, image),
                Err(error) => gap(&error, &change.shape),
            },
        }
    }
}

/// Whether a row passes the filter, if there is one; `None` when nobody can tell.
pub(crate) fn passes(placed: Option<&Placed>, row: Row<'_>) -> Option<bool> {
    placed.map_or(Some(true), |placed| placed.passes(row))
}

/// What is said when an event cannot be shown.
pub(crate) fn gap(error: &Unshowable, shape: &Shape) -> Outcome {
    if *error == Unshowable::Malformed {
        warn!(schema = %shape.schema, table = %shape.name, "a value of the log cannot be read");
    }
    Outcome::Gap(Resync::Incomplete)
}
