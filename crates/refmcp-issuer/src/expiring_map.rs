//! A bounded map whose entries expire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refmcp_auth::Seconds;

/// Entries by name; the oldest are evicted when there are too many.
pub(crate) struct ExpiringMap<V> {
    most: usize,
    entries: HashMap<Arc<str>, Entry<V>>,
    /// Names by age.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

struct Entry<V> {
    place: u64,
    until: Seconds,
    value: V,
}

impl<V> ExpiringMap<V> {
    /// A map with this capacity.
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), entries: HashMap::new(), order: BTreeMap::new(), next: 0 }
    }

    /// Inserts a value as the newest, until a time.
    pub(crate) fn insert(&mut self, name: &str, value: V, until: Seconds, now: Seconds) {
        self.remove(name);
        self.make_room(now);
        let name: Arc<str> = name.into();
        self.order.insert(self.next, Arc::clone(&name));
        self.entries.insert(name, Entry { place: self.next, until, value });
        self.next += 1;
    }

    /// Entries expire roughly in the order of insertion, so expired ones are among the oldest.
    fn make_room(&mut self, now: Seconds) {
        while let Some(name) = self.order.first_key_value().map(|(_, name)| Arc::clone(name)) {
            let is_over = self.entries.get(&name).is_none_or(|entry| entry.until <= now);
            if !is_over && self.entries.len() < self.most {
                break;
            }
            self.remove(&name);
        }
    }

    /// The value of this name, unless it has expired.
    pub(crate) fn get(&self, name: &str, now: Seconds) -> Option<&V> {
        self.entries.get(name).filter(|entry| now < entry.until).map(|entry| &entry.value)
    }

    /// The value of this name for a change, unless it has expired.
    pub(crate) fn get_mut(&mut self, name: &str, now: Seconds) -> Option<&mut V> {
        self.entries.get_mut(name).filter(|entry| now < entry.until).map(|entry| &mut entry.value)
    }

    /// Removes an entry, expired or not.
    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        let entry = self.entries.remove(name)?;
        self.order.remove(&entry.place);
        Some(entry.value)
    }

    /// The number of entries, including expired ones that are still stored.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_evicted() {
        let mut map = ExpiringMap::new(2);
        map.insert("a", 1, 100, 0);
        map.insert("b", 2, 100, 0);
        map.insert("a", 3, 100, 0);
        map.insert("c", 4, 100, 0);
        assert_eq!((map.get("a", 0), map.get("b", 0), map.get("c", 0)), (Some(&3), None, Some(&4)));
        assert_eq!((map.entries.len(), map.order.len()), (2, 2));
    }

    #[test]
    fn expired_entries_are_not_returned() {
        let mut map = ExpiringMap::new(10);
        map.insert("a", 1, 5, 0);
        assert_eq!((map.get("a", 4), map.get("a", 5)), (Some(&1), None));
        assert_eq!(map.get_mut("a", 5), None);
        map.insert("b", 2, 9, 5);
        assert_eq!(map.len(), 1);
        assert_eq!((map.remove("b"), map.remove("b")), (Some(2), None));
    }
}
