//! A set of ids in little memory.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Ids that were seen. Integers in a row are one entry, and of other ids a hash is kept.
#[derive(Debug, Default)]
pub(super) struct IdSet {
    /// The first and the last of integers in a row.
    rows: BTreeMap<i64, i64>,
    others: HashSet<u64>,
    /// An id was left out.
    is_full: bool,
}

/// Entries of a set; ids beyond them are left out.
const MAX_ENTRIES: usize = 1024;

impl IdSet {
    /// Adds an id.
    pub(super) fn insert(&mut self, id: &Value) {
        if self.has(id) {
            return;
        }
        let full = self.rows.len() + self.others.len() >= MAX_ENTRIES;
        match id.as_i64() {
            Some(number) => self.insert_number(number, full),
            None if full => self.is_full = true,
            None => {
                self.others.insert(hash(id));
            }
        }
    }

    /// Whether the id was added.
    pub(super) fn has(&self, id: &Value) -> bool {
        match id.as_i64() {
            Some(number) => self.rows.range(..=number).next_back().is_some_and(|(_, last)| *last >= number),
            None => self.others.contains(&hash(id)),
        }
    }

    /// Whether the id was surely not added.
    pub(super) fn lacks(&self, id: &Value) -> bool {
        !self.is_full && !self.has(id)
    }

    fn insert_number(&mut self, number: i64, full: bool) {
        let before =
            self.rows.range(..number).next_back().filter(|(_, last)| last.checked_add(1) == Some(number));
        let next = number.checked_add(1);
        let behind = next.and_then(|next| self.rows.get(&next).copied());
        match (before.map(|(first, _)| *first), behind) {
            (Some(first), behind) => {
                self.rows.insert(first, behind.unwrap_or(number));
            }
            (None, Some(last)) => {
                self.rows.insert(number, last);
            }
            (None, None) if full => self.is_full = true,
            (None, None) => {
                self.rows.insert(number, number);
            }
        }
        if let Some(next) = next.filter(|_| behind.is_some()) {
            self.rows.remove(&next);
        }
    }
}

fn hash(id: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_in_a_row_are_one_entry() {
        let mut ids = IdSet::default();
        for id in (0..10_000).chain(20_000..30_000).chain((10_000..20_000).rev()) {
            assert!(ids.lacks(&json!(id)), "{id}");
            ids.insert(&json!(id));
        }
        assert_eq!(ids.rows, BTreeMap::from([(0, 29_999)]));
        assert!(ids.has(&json!(12_345)) && !ids.has(&json!("12345")) && ids.lacks(&json!(-1)));
        ids.insert(&json!(i64::MAX));
        ids.insert(&json!(i64::MIN));
        assert!(ids.has(&json!(i64::MAX)) && ids.has(&json!(i64::MIN)));
    }

    #[test]
    fn a_full_set_is_sure_of_what_it_has_alone() {
        let mut ids = IdSet::default();
        for id in 0..2 * MAX_ENTRIES {
            ids.insert(&json!(id.to_string()));
        }
        assert_eq!(ids.others.len(), MAX_ENTRIES);
        assert!(ids.has(&json!("7")) && !ids.has(&json!("new")) && !ids.lacks(&json!("new")));
    }
}
