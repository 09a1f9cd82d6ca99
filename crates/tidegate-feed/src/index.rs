//! Finds the subscriptions that a change may matter to: by operation, then by the value of a
//! column that they compare for equality.

use std::collections::HashMap;
use std::sync::Arc;

use crate::change::Row;
use crate::pgoutput::Value;
use crate::predicate::{Equality, Matcher};
use crate::shape::Shape;
use crate::subscriber::Subscriber;

/// A subscription in the index, ready for the table's shape.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) matcher: Option<Arc<dyn Matcher>>,
    /// Which of the table's encoders shows it its events.
    pub(crate) plan: usize,
}

/// The subscriptions to one operation on one table.
#[derive(Default)]
pub(crate) struct Index {
    keyed: Vec<Keyed>,
    rest: Vec<Live>,
}

/// Those that want certain values in a column.
struct Keyed {
    column: Box<str>,
    at: Option<usize>,
    by_value: HashMap<Box<[u8]>, Vec<Live>>,
}

impl Index {
    pub(crate) fn insert(&mut self, live: &Live, shape: Option<&Shape>) {
        let Some(equality) = &live.subscriber.equality else {
            self.rest.push(live.clone());
            return;
        };
        let keyed = self.keyed(equality, shape);
        for value in &equality.values {
            keyed
                .by_value
                .entry(value.as_bytes().into())
                .or_default()
                .push(live.clone());
        }
    }

    fn keyed(&mut self, equality: &Equality, shape: Option<&Shape>) -> &mut Keyed {
        let at = self
            .keyed
            .iter()
            .position(|keyed| keyed.column == equality.column);
        let at = at.unwrap_or_else(|| {
            self.keyed.push(Keyed {
                column: equality.column.clone(),
                at: shape.and_then(|shape| shape.find(&equality.column)),
                by_value: HashMap::new(),
            });
            self.keyed.len() - 1
        });
        &mut self.keyed[at]
    }

    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        let other = |live: &Live| live.subscriber.id != subscriber.id;
        let Some(equality) = &subscriber.equality else {
            self.rest.retain(other);
            return;
        };
        let column = &equality.column;
        let Some(keyed) = self.keyed.iter_mut().find(|keyed| keyed.column == *column) else {
            return;
        };
        for value in &equality.values {
            if let Some(lives) = keyed.by_value.get_mut(value.as_bytes()) {
                lives.retain(other);
                if lives.is_empty() {
                    keyed.by_value.remove(value.as_bytes());
                }
            }
        }
    }

    /// Gives every subscription that the row may matter to; each at least once.
    pub(crate) fn each<'a>(&'a self, row: Row<'_>, take: &mut dyn FnMut(&'a Live)) {
        for keyed in &self.keyed {
            match keyed.at.map_or(Value::Absent, |at| row.value(at)) {
                Value::Null => {}
                Value::Text(value) => {
                    keyed
                        .by_value
                        .get(value)
                        .into_iter()
                        .flatten()
                        .for_each(&mut *take);
                }
                Value::Absent => keyed.by_value.values().flatten().for_each(&mut *take),
            }
        }
        self.rest.iter().for_each(take);
    }
}
