//! One subscription, and what a change means to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tidegate_sql::Login;
use tracing::warn;

use crate::change::{Change, Event, Operation, Operations, Row};
use crate::policy::Judge;
use crate::predicate::{Equality, Matcher, Predicate, Verdict};
use crate::queue::{Delivery, Ended, Item, Outbox, Resync};
use crate::selection::{Encoder, Selection, Unshowable};
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
    pub(crate) operations: Operations,
    pub(crate) selection: Arc<Selection>,
    pub(crate) predicate: Option<Arc<dyn Predicate>>,
    pub(crate) equality: Option<Equality>,
    /// Every column that it shows or looks at.
    pub(crate) columns: Vec<Box<str>>,
    pub(crate) outbox: Outbox,
    /// Who decides which rows the role may see, where row level security applies.
    pub(crate) judge: Option<Arc<Judge>>,
    pub(crate) over: AtomicBool,
}

impl Subscriber {
    /// Whether nothing may be delivered any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) || self.outbox.is_closed()
    }

    /// Ends the subscription, once.
    pub(crate) fn end(&self, why: Ended) {
        if !self.over.swap(true, Ordering::AcqRel) {
            self.outbox.tell(self.delivery(Item::Ended(why)));
        }
    }

    pub(crate) fn delivery(&self, item: Item) -> Delivery {
        Delivery {
            subscription: self.tag,
            item,
        }
    }

    /// Readies the condition for a shape.
    pub(crate) fn compile(&self, shape: &Shape) -> Result<Option<Arc<dyn Matcher>>, Ended> {
        let Some(predicate) = &self.predicate else {
            return Ok(None);
        };
        let compiled = predicate.compile(shape);
        compiled
            .map(Some)
            .map_err(|problem| Ended::Changed { problem })
    }

    /// Readies the subscription for a shape, on its own.
    pub(crate) fn bind(&self, shape: &Shape) -> Result<Bound, Ended> {
        let encoder = Encoder::new(&self.selection, shape).map_err(|error| changed(&error))?;
        Ok(Bound {
            generation: shape.generation,
            encoder,
            matcher: self.compile(shape)?,
        })
    }
}

/// Why a selection does not fit a shape.
pub(crate) fn changed(error: &Unshowable) -> Ended {
    let problem = match error {
        Unshowable::NoColumn(name) => format!("the column `{name}` is gone"),
        Unshowable::Absent | Unshowable::Malformed => "a value cannot be shown".to_owned(),
    };
    Ended::Changed { problem }
}

/// A subscription for one shape.
pub(crate) struct Bound {
    pub(crate) generation: u64,
    encoder: Encoder,
    matcher: Option<Arc<dyn Matcher>>,
}

/// What a change means to a subscription.
#[derive(Debug)]
pub(crate) enum Outcome {
    Nothing,
    Event(Operation, Bytes),
    Gap(Resync),
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
        match matches(self.matcher.as_ref(), row) {
            Verdict::Fail => Outcome::Nothing,
            Verdict::Absent => Outcome::Gap(Resync::Incomplete),
            Verdict::Pass => match self.encoder.encode(row) {
                Ok(bytes) => Outcome::Event(operation, bytes),
                Err(error) => gap(&error, &change.shape),
            },
        }
    }
}

/// Whether a row passes the condition, if there is one.
pub(crate) fn matches(matcher: Option<&Arc<dyn Matcher>>, row: Row<'_>) -> Verdict {
    matcher.map_or(Verdict::Pass, |matcher| matcher.judge(row))
}

/// What is said when an event cannot be shown.
pub(crate) fn gap(error: &Unshowable, shape: &Shape) -> Outcome {
    if *error == Unshowable::Malformed {
        warn!(schema = %shape.schema, table = %shape.name, "a value of the log cannot be read");
    }
    Outcome::Gap(Resync::Incomplete)
}
