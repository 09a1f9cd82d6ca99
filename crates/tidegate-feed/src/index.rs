//! Finds the subscriptions that a change may matter to: by operation, then by the value of a
//! column that they compare for equality.

use std::collections::HashMap;
use std::sync::Arc;

use crate::change::Row;
use tidegate_filter::{Key, KeyReader};
use tidegate_sql::Type;

use crate::pgoutput::Value;
use crate::predicate::{Equality, Placed, image};
use crate::shape::Shape;
use crate::subscriber::Subscriber;

/// A subscription in the index, ready for the table's shape.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) placed: Option<Arc<Placed>>,
    /// Which of the table's encoders shows it its events.
    pub(crate) plan: usize,
}

/// The subscriptions to one operation on one table.
#[derive(Default)]
pub(crate) struct Index {
    keyed: Vec<Keyed>,
    rest: Vec<Live>,
    /// By what the subscriptions were put in that compare something for equality.
    equalities: HashMap<u64, Arc<Equality>>,
}

/// Those that want certain values in a column.
struct Keyed {
    column: Box<str>,
    r#type: Type,
    reader: KeyReader,
    at: Option<usize>,
    by_value: HashMap<Key<'static>, Vec<Live>>,
}

impl Keyed {
    fn is_of(&self, equality: &Equality) -> bool {
        self.column == equality.column && self.r#type == equality.r#type
    }

    /// Those that want the value of a row; `None` when the value is not known.
    fn find<'r>(&'r self, row: Row<'r>) -> Option<&'r [Live]> {
        let value = row.value(self.at?);
        if value == Value::Absent {
            return None;
        }
        let Some(key) = self.reader.read(image(value)).ok()? else {
            return Some(&[]);
        };
        if !key.is_placed() {
            return None;
        }
        // A map of keys that live for ever is one of keys that live less long.
        let by_value: &HashMap<Key<'_>, Vec<Live>> = &self.by_value;
        Some(by_value.get(&key).map_or(&[], Vec::as_slice))
    }
}

impl Index {
    pub(crate) fn insert(&mut self, live: &Live, shape: Option<&Shape>) {
        let equality = match &live.placed {
            Some(placed) => placed.equality(),
            None => live.subscriber.equality(),
        };
        let Some(equality) = equality else {
            self.rest.push(live.clone());
            return;
        };
        let id = live.subscriber.id;
        self.equalities.insert(id, equality.clone());
        let keyed = self.keyed(equality, shape);
        for key in &equality.keys {
            keyed
                .by_value
                .entry(key.clone())
                .or_default()
                .push(live.clone());
        }
    }

    fn keyed(&mut self, equality: &Equality, shape: Option<&Shape>) -> &mut Keyed {
        let at = self.keyed.iter().position(|keyed| keyed.is_of(equality));
        let at = at.unwrap_or_else(|| {
            self.keyed.push(Keyed {
                column: equality.column.clone(),
                r#type: equality.r#type.clone(),
                reader: equality.reader.clone(),
                at: shape.and_then(|shape| shape.find(&equality.column)),
                by_value: HashMap::new(),
            });
            self.keyed.len() - 1
        });
        &mut self.keyed[at]
    }

    pub(crate) fn remove(&mut self, subscriber: &Subscriber) {
        let other = |live: &Live| live.subscriber.id != subscriber.id;
        let Some(equality) = self.equalities.remove(&subscriber.id) else {
            self.rest.retain(other);
            return;
        };
        let Some(keyed) = self.keyed.iter_mut().find(|keyed| keyed.is_of(&equality)) else {
            return;
        };
        for key in &equality.keys {
            if let Some(lives) = keyed.by_value.get_mut(key) {
                lives.retain(other);
                if lives.is_empty() {
                    keyed.by_value.remove(key);
                }
            }
        }
    }

    /// Gives every subscription that the row may matter to; each at least once.
    pub(crate) fn each(&self, row: Row<'_>, take: &mut dyn FnMut(&Live)) {
        for keyed in &self.keyed {
            match keyed.find(row) {
                Some(lives) => lives.iter().for_each(&mut *take),
                None => keyed.by_value.values().flatten().for_each(&mut *take),
            }
        }
        self.rest.iter().for_each(take);
    }
}
