//! An ordered collection of things with names, of which any position can be found again after others have come
//! and gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::HashMap;

/// Things by name, in the order in which they were put there.
#[derive(Debug)]
pub(crate) struct OrderedMap<T> {
    next: u64,
    places: HashMap<String, u64>,
    things: BTreeMap<u64, Arc<T>>,
}

impl<T> Default for OrderedMap<T> {
    fn default() -> Self {
        Self { next: 0, places: HashMap::default(), things: BTreeMap::new() }
    }
}

impl<T> OrderedMap<T> {
    /// Puts a thing there; one of the same name is replaced, in its place.
    pub(crate) fn put(&mut self, name: &str, thing: T) {
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.next += 1;
            self.next
        });
        self.things.insert(place, Arc::new(thing));
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.places.remove(name).is_some_and(|place| self.things.remove(&place).is_some())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.things.get(self.places.get(name)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    /// The things behind a place, with their places.
    pub(crate) fn after(&self, place: u64) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.things.range(place + 1..).map(|(place, thing)| (*place, thing))
    }

    /// The places of those things here that another map has things of the same names for.
    pub(crate) fn places_taken_by(&self, other: &Self) -> BTreeSet<u64> {
        other.places.keys().filter_map(|name| self.places.get(name).copied()).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.things.values()
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
