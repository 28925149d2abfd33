//! An ordered collection of things with names, of which any position can be found again after others have come
//! and gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

/// Things by name, in the order in which they were put there.
#[derive(Debug)]
pub(crate) struct OrderedMap<T> {
    next: u64,
    /// With their places. Each call looks its thing up by name, and so finds it at once.
    by_name: HashMap<String, (u64, Arc<T>)>,
    in_order: BTreeMap<u64, Arc<T>>,
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self { next: 0, by_name: HashMap::default(), in_order: BTreeMap::new() }
    }
}

impl<T> OrderedMap<T> {
    /// Puts a thing there; one of the same name is replaced, in its place.
    pub(crate) fn put(&mut self, name: &str, thing: T) {
        let thing = Arc::new(thing);
        let place = match self.by_name.get(name) {
            Some((place, _)) => *place,
            None => {
                self.next += 1;
                self.next
            }
        };
        self.by_name.insert(name.to_owned(), (place, thing.clone()));
        self.in_order.insert(place, thing);
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.by_name.remove(name).is_some_and(|(place, _)| self.in_order.remove(&place).is_some())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.by_name.get(name).map(|(_, thing)| thing)
    }

    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }

    /// The things behind a place, with their places.
    pub(crate) fn after(&self, place: u64) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.in_order.range(place + 1..).map(|(place, thing)| (*place, thing))
    }

    /// The places of those things here that another map has things of the same names for.
    pub(crate) fn places_taken_by(&self, other: &Self) -> BTreeSet<u64> {
        other.by_name.keys().filter_map(|name| Some(self.by_name.get(name)?.0)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.in_order.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_when_others_go() {
        let mut map = OrderedMap::default();
        for name in ["a", "b", "c"] {
            map.put(name, name);
        }
        let (second, _) = map.after(0).nth(1).unwrap();
        assert!(map.remove("a"));
        assert!(!map.remove("a"));
        map.put("d", "d");
        map.put("b", "B");
        assert_eq!(map.after(second).map(|(_, thing)| **thing).collect::<Vec<_>>(), ["c", "d"]);
        assert_eq!(map.iter().map(|thing| **thing).collect::<Vec<_>>(), ["B", "c", "d"]);
        assert_eq!(map.len(), 3);
    }
}
