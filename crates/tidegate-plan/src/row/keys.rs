//! The keys that connect rows of two levels.

use std::collections::HashMap;

use tidegate_values::{Parameter, Type, base_type};

use super::program::narrow;

/// The form in which the service compares the values of a key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// An `int2`, `int4` or `int8`. Equal numbers are equal keys, whatever their width.
    Integer,
    /// The text of the value. Columns of all types but integers are selected as `text`.
    Text,
}

impl KeyKind {
    pub(crate) fn of(r#type: &Type) -> Self {
        match *base_type(r#type) {
            Type::INT2 | Type::INT4 | Type::INT8 => Self::Integer,
            _ => Self::Text,
        }
    }
}

/// The distinct keys of a level's rows. Each key has a slot, which is its index in the order of
/// appearance. A row with NULL in a key column has no key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    kinds: Vec<KeyKind>,
    /// The slot of each key, if the key is one integer column.
    integers: HashMap<i64, u32>,
    /// The keys in the order of their slots, if the key is one integer column.
    order: Vec<i64>,
    /// The slot of each key, for all other kinds of keys. A key is encoded as the values of its
    /// columns, each after its length.
    texts: HashMap<Box<[u8]>, u32>,
    /// For each key column, its values in the order of the slots, as the text of an array literal
    /// without the braces. Empty if the key is one integer column.
    arrays: Vec<String>,
    count: u32,
    /// The number of rows that have a key.
    rows: u64,
    /// The most recently used integer key and its slot; `None` before the first key. They save
    /// look-ups, because rows with equal keys mostly follow each other.
    last: Option<(i64, u32)>,
    /// The encoded key that is being looked up. It is stored here to reuse the memory.
    scratch: Vec<u8>,
}

impl Keys {
    /// An empty set of keys whose columns are of these kinds.
    pub(crate) fn new(kinds: Vec<KeyKind>) -> Self {
        let arrays = kinds.iter().map(|_| String::new()).collect();
        Self {
            kinds,
            arrays,
            ..Self::default()
        }
    }

    /// An empty set of keys with the same columns.
    pub(crate) fn new_empty(&self) -> Self {
        Self::new(self.kinds.clone())
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.kinds));
    }

    /// The number of key columns.
    pub(crate) fn width(&self) -> usize {
        self.kinds.len()
    }

    /// The number of distinct keys.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether several rows have the same key.
    pub(crate) fn has_repeated_keys(&self) -> bool {
        self.rows > u64::from(self.count)
    }

    /// For each slot of this set, the slot that its key has in `others`; `None` if `others` lacks
    /// the key.
    pub(crate) fn slots_in(&self, others: &Self) -> Vec<Option<u32>> {
        let mut next = 0;
        let slot_in_others = |key: &i64| {
            // The keys of both sets are mostly in the same order. So the next key of `others` is
            // compared first, which often saves a look-up in the hash map.
            if others.order.get(next) == Some(key) {
                next += 1;
                return Some(narrow(next - 1));
            }
            others.integers.get(key).copied()
        };
        let mut slots: Vec<_> = self.order.iter().map(slot_in_others).collect();
        slots.resize(self.count as usize, None);
        for (key, slot) in &self.texts {
            if let Some(place) = slots.get_mut(*slot as usize) {
                *place = others.texts.get(key).copied();
            }
        }
        slots
    }

    /// Adds the key of a row if it is new, and returns its slot. Returns `None` if a key column is
    /// NULL or has no valid value. Takes the values of the key columns from `values`.
    pub(crate) fn insert<'v>(
        &mut self,
        values: &mut impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Option<u32> {
        let slot = self.slot(values)?;
        self.rows += 1;
        Some(slot)
    }

    fn slot<'v>(&mut self, values: &mut impl Iterator<Item = Option<&'v [u8]>>) -> Option<u32> {
        if self.kinds[..] == [KeyKind::Integer] {
            let key = integer(values.next()??)?;
            return Some(self.insert_integer(key));
        }
        if !self.read(values) {
            return None;
        }
        if let Some(&slot) = self.texts.get(&self.scratch[..]) {
            return Some(slot);
        }
        let slot = self.count;
        self.texts.insert(self.scratch[..].into(), slot);
        let mut rest = &self.scratch[..];
        for (kind, array) in self.kinds.iter().zip(&mut self.arrays) {
            let Some((value, after)) = split(rest) else {
                break;
            };
            rest = after;
            separate(array);
            match kind {
                KeyKind::Integer => push_integer(integer(value).unwrap_or_default(), array),
                KeyKind::Text => push_element(&String::from_utf8_lossy(value), array),
            }
        }
        self.count += 1;
        Some(slot)
    }

    /// The values of a key column as an array, in the order of the slots.
    pub(crate) fn array(&self, column: usize) -> Parameter {
        let elements = self.arrays.get(column).map_or("", String::as_str);
        let mut text = String::with_capacity(elements.len() + 2);
        text.push('{');
        text.push_str(elements);
        for (at, key) in self.order.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            push_integer(*key, &mut text);
        }
        text.push('}');
        Parameter::Text(text.into())
    }

    fn insert_integer(&mut self, key: i64) -> u32 {
        if let Some((last, slot)) = self.last
            && last == key
        {
            return slot;
        }
        let count = self.count;
        let slot = *self.integers.entry(key).or_insert(count);
        if slot == count {
            self.count += 1;
            self.order.push(key);
        }
        self.last = Some((key, slot));
        slot
    }

    /// Encodes the columns of a key into `scratch`; returns false if one of them is NULL or has no
    /// valid value.
    fn read<'v>(&mut self, values: &mut impl Iterator<Item = Option<&'v [u8]>>) -> bool {
        self.scratch.clear();
        let mut whole = true;
        for kind in &self.kinds {
            let Some(value) = values.next().flatten() else {
                whole = false;
                continue;
            };
            match (kind, integer(value)) {
                // Equal integers have equal bytes here, whatever the width of their columns.
                (KeyKind::Integer, Some(number)) => {
                    push_value(&number.to_be_bytes(), &mut self.scratch);
                }
                (KeyKind::Integer, None) => whole = false,
                (KeyKind::Text, _) => push_value(value, &mut self.scratch),
            }
        }
        whole
    }
}

fn push_value(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&value.len().to_be_bytes());
    out.extend_from_slice(value);
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from_be_bytes(*length))
}

/// Reads an integer from its binary form.
fn integer(raw: &[u8]) -> Option<i64> {
    match raw.len() {
        2 => raw
            .try_into()
            .ok()
            .map(|raw| i16::from_be_bytes(raw).into()),
        4 => raw
            .try_into()
            .ok()
            .map(|raw| i32::from_be_bytes(raw).into()),
        8 => raw.try_into().ok().map(i64::from_be_bytes),
        _ => None,
    }
}

fn separate(array: &mut String) {
    if !array.is_empty() {
        array.push(',');
    }
}

fn push_integer(number: i64, array: &mut String) {
    array.push_str(itoa::Buffer::new().format(number));
}

/// Appends a quoted element of an array literal (PostgreSQL, "Array Value Input").
pub(crate) fn push_element(text: &str, array: &mut String) {
    array.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        array.push_str(&rest[..at]);
        array.push('\\');
        array.push_str(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    array.push_str(rest);
    array.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(keys: &mut Keys, value: &[u8]) -> Option<u32> {
        keys.insert(&mut [Some(value)].into_iter())
    }

    #[test]
    fn integers_of_every_width_are_one_key() {
        let mut keys = Keys::new(vec![KeyKind::Integer]);
        assert_eq!(one(&mut keys, &7_i32.to_be_bytes()), Some(0));
        assert_eq!(one(&mut keys, &7_i64.to_be_bytes()), Some(0));
        assert_eq!(one(&mut keys, &(-1_i16).to_be_bytes()), Some(1));
        assert_eq!(keys.array(0), Parameter::Text("{7,-1}".into()));
        assert_eq!(one(&mut keys, &(-1_i64).to_be_bytes()), Some(1));
        assert!(keys.has_repeated_keys());
    }

    #[test]
    fn keys_are_found_among_others() {
        let (mut here, mut there) = (
            Keys::new(vec![KeyKind::Integer]),
            Keys::new(vec![KeyKind::Integer]),
        );
        for key in [5_i32, 6, 7] {
            one(&mut here, &key.to_be_bytes());
        }
        for key in [7_i64, 5] {
            one(&mut there, &key.to_be_bytes());
        }
        assert_eq!(here.slots_in(&there), [Some(1), None, Some(0)]);
        assert_eq!(there.slots_in(&here), [Some(2), Some(0)]);
        let mut some = Keys::new(vec![KeyKind::Integer]);
        for key in [5_i32, 7] {
            one(&mut some, &key.to_be_bytes());
        }
        assert_eq!(here.slots_in(&some), [Some(0), None, Some(1)]);
        assert!(!here.has_repeated_keys());
    }

    #[test]
    fn null_is_no_key() {
        let mut keys = Keys::new(vec![KeyKind::Integer, KeyKind::Text]);
        let two = 2_i32.to_be_bytes();
        let mut null = [Some(&two[..]), None].into_iter();
        assert_eq!(keys.insert(&mut null), None);
        assert_eq!((keys.count(), null.next()), (0, None));
    }

    #[test]
    fn texts_are_quoted_in_the_array() {
        let mut keys = Keys::new(vec![KeyKind::Text]);
        one(&mut keys, br#"a"b\c"#);
        one(&mut keys, b"NULL");
        one(&mut keys, b"");
        assert_eq!(
            keys.array(0),
            Parameter::Text(r#"{"a\"b\\c","NULL",""}"#.into())
        );
    }

    #[test]
    fn columns_do_not_run_into_one_another() {
        let mut keys = Keys::new(vec![KeyKind::Text, KeyKind::Text]);
        let mut put =
            |a: &'static [u8], b: &'static [u8]| keys.insert(&mut [Some(a), Some(b)].into_iter());
        assert_eq!(put(b"a", b"bc"), Some(0));
        assert_eq!(put(b"ab", b"c"), Some(1));
    }
}
