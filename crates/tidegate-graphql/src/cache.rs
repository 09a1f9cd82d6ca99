//! A least-recently-used cache that is bounded by the number of entries and by their bytes.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A least-recently-used cache.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: Mutex<Entries<K, V>>,
    most_entries: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Entries<K, V> {
    known: HashMap<K, CacheEntry<V>>,
    bytes: usize,
    /// The number of uses so far. It orders the entries by their last use.
    now: u64,
}

#[derive(Debug)]
struct CacheEntry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// A cache for at most this many entries with at most this many bytes in total.
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> Self {
        Self {
            entries: Mutex::new(Entries {
                known: HashMap::new(),
                bytes: 0,
                now: 0,
            }),
            most_entries,
            most_bytes,
        }
    }

    /// The value for a key. This counts as a use of it.
    pub(crate) fn get<Q>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut entries = self.lock();
        entries.now += 1;
        let now = entries.now;
        let entry = entries.known.get_mut(key)?;
        entry.used = now;
        Some(entry.value.clone())
    }

    /// Drops the values for which `keep` returns false.
    pub(crate) fn retain(&self, keep: impl Fn(&V) -> bool) {
        let mut entries = self.lock();
        let mut dropped = 0;
        entries.known.retain(|_, entry| {
            let kept = keep(&entry.value);
            dropped += if kept { 0 } else { entry.bytes };
            kept
        });
        entries.bytes -= dropped;
    }

    /// Inserts a value that takes `bytes` bytes. A value that exceeds the limit by itself is not
    /// inserted.
    pub(crate) fn put(&self, key: K, value: V, bytes: usize) {
        if bytes > self.most_bytes {
            return;
        }
        let mut entries = self.lock();
        entries.now += 1;
        let used = entries.now;
        let entry = CacheEntry { value, bytes, used };
        if let Some(old) = entries.known.insert(key, entry) {
            entries.bytes -= old.bytes;
        }
        entries.bytes += bytes;
        if entries.known.len() > self.most_entries || entries.bytes > self.most_bytes {
            entries.shrink(self.most_entries / 4 * 3, self.most_bytes / 4 * 3);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone, V> Entries<K, V> {
    /// Evicts the least recently used quarter at once, so that the cost of sorting is spread over
    /// many insertions.
    fn shrink(&mut self, entries: usize, bytes: usize) {
        let mut by_use: Vec<_> = self
            .known
            .iter()
            .map(|(key, entry)| (entry.used, key.clone()))
            .collect();
        by_use.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in by_use {
            if self.known.len() <= entries && self.bytes <= bytes {
                break;
            }
            if let Some(old) = self.known.remove(&key) {
                self.bytes -= old.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_leaves() {
        let cache = Cache::new(8, 1_000);
        for number in 0..8 {
            cache.put(number, number, 1);
        }
        assert_eq!(cache.get(&0), Some(0));
        cache.put(8, 8, 1);
        assert_eq!(cache.get(&0), Some(0));
        assert_eq!(cache.get(&1), None);
    }

    #[test]
    fn bytes_are_bounded_too_and_what_alone_is_too_large_is_not_kept() {
        let cache = Cache::new(100, 100);
        cache.put("huge", 0, 101);
        assert_eq!(cache.get("huge"), None);
        for key in ["a", "b", "c", "d", "e"] {
            cache.put(key, 1, 25);
        }
        assert_eq!(cache.get("e"), Some(1));
        assert_eq!(cache.get("a"), None);
    }
}
