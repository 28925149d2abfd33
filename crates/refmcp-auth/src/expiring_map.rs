//! A bounded map whose entries expire.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;

use crate::Seconds;

/// Entries that expire; the oldest are evicted when there are too many.
pub struct ExpiringMap<K, V> {
    most: usize,
    entries: HashMap<K, Entry<V>>,
    /// Keys by age.
    order: BTreeMap<u64, K>,
    next: u64,
}

struct Entry<V> {
    position: u64,
    until: Seconds,
    value: V,
}

impl<K: Clone + Eq + Hash, V> ExpiringMap<K, V> {
    /// A map with this capacity.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), entries: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Inserts a value as the newest, until a time.
    pub fn insert(&mut self, key: impl Into<K>, value: V, until: Seconds, now: Seconds) {
        let key = key.into();
        self.remove(&key);
        self.make_room(now);
        self.order.insert(self.next, key.clone());
        self.entries.insert(key, Entry { position: self.next, until, value });
        self.next += 1;
    }

    /// Entries expire roughly in the order of insertion, so expired ones are among the oldest.
    fn make_room(&mut self, now: Seconds) {
        while let Some(oldest) = self.order.first_entry() {
            let expired = self.entries.get(oldest.get()).is_none_or(|entry| entry.until <= now);
            if !expired && self.entries.len() < self.most {
                break;
            }
            self.entries.remove(&oldest.remove());
        }
    }

    /// The value of a key, unless it has expired.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q, now: Seconds) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).filter(|entry| now < entry.until).map(|entry| &entry.value)
    }

    /// The value of a key for a change, unless it has expired.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, now: Seconds) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key).filter(|entry| now < entry.until).map(|entry| &mut entry.value)
    }

    /// Removes an entry, expired or not.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.position);
        Some(entry.value)
    }

    /// The number of entries, including expired ones that are still stored.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Without the entries: they may be secret.
impl<K, V> fmt::Debug for ExpiringMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringMap").field("len", &self.entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_evicted() {
        let mut map = ExpiringMap::<String, _>::new(2);
        map.insert("a", 1, 100, 0);
        map.insert("b", 2, 100, 0);
        map.insert("a", 3, 100, 0);
        map.insert("c", 4, 100, 0);
        assert_eq!((map.get("a", 0), map.get("b", 0), map.get("c", 0)), (Some(&3), None, Some(&4)));
        assert_eq!((map.entries.len(), map.order.len()), (2, 2));
    }

    #[test]
    fn expired_entries_are_not_returned() {
        let mut map = ExpiringMap::<String, _>::new(10);
        map.insert("a", 1, 5, 0);
        assert_eq!((map.get("a", 4), map.get("a", 5)), (Some(&1), None));
        assert_eq!(map.get_mut("a", 5), None);
        map.insert("b", 2, 9, 5);
        assert_eq!(map.len(), 1);
        assert_eq!((map.remove("b"), map.remove("b")), (Some(2), None));
    }
}
