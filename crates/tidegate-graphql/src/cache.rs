//! A cache that is bounded by the number of entries and by their bytes.

use std::hash::Hash;

use quick_cache::sync::{Cache as WeightedCache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};

/// A cache that evicts entries that are rarely used.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: WeightedCache<K, CacheEntry<V>, BytesOfEntry>,
    /// The minimum weight of an entry. It bounds the number of entries, because [`WeightedCache`]
    /// limits only the total weight of all entries.
    least_weight: u64,
}

#[derive(Clone, Debug)]
struct CacheEntry<V> {
    value: V,
    weight: u64,
}

#[derive(Clone, Debug)]
struct BytesOfEntry;

impl<K, V> Weighter<K, CacheEntry<V>> for BytesOfEntry {
    fn weight(&self, _: &K, entry: &CacheEntry<V>) -> u64 {
        entry.weight
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache for at most `most_entries` entries, which have at most `most_bytes` bytes
    /// together.
    pub(crate) fn new(most_entries: usize, most_bytes: usize) -> Self {
        // One shard is used, because with several shards an entry would have to fit into the
        // capacity of one of them.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity(most_entries)
            .weight_capacity(most_bytes as u64)
            .build()
            .expect("both capacities are set");
        Self {
            entries: WeightedCache::with_options(
                options,
                BytesOfEntry,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            least_weight: (most_bytes / most_entries) as u64,
        }
    }

    /// The value for a key. The call counts as a use of the entry.
    pub(crate) fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        self.entries.get(key).map(|entry| entry.value)
    }

    /// Removes the entries for whose values `keep` returns false.
    pub(crate) fn retain(&self, keep: impl Fn(&V) -> bool) {
        self.entries.retain(|_, entry| keep(&entry.value));
    }

    /// Inserts a value that takes `bytes` bytes. A value with more bytes than the limit on the
    /// whole cache is not inserted.
    pub(crate) fn put(&self, key: K, value: V, bytes: usize) {
        let weight = self.least_weight.max(bytes as u64);
        self.entries.insert(key, CacheEntry { value, weight });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache = Cache::new(8, 1_000);
        for number in 0..100 {
            cache.put(number, number, 1);
            assert_eq!(cache.get(&0), Some(0), "used after every other one");
        }
        let kept = (0..100).filter(|number| cache.get(number).is_some());
        assert_eq!(kept.count(), 8);
    }

    #[test]
    fn bytes_are_bounded_too_and_what_alone_is_too_large_is_not_kept() {
        let cache = Cache::new(100, 100);
        cache.put("huge", 0, 101);
        assert_eq!(cache.get("huge"), None);
        let keys = ["a", "b", "c", "d", "e"];
        for key in keys {
            cache.put(key, 1, 25);
        }
        let kept = keys.iter().filter(|key| cache.get(**key).is_some());
        assert_eq!(kept.count(), 4);
        cache.retain(|_| false);
        assert!(keys.iter().all(|key| cache.get(*key).is_none()));
    }
}
