//! Caches in the state folder: values by a key in one file, each with the time it was written. A cache that is lost or
//! damaged begins anew.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::folder::StateFolder;
use super::timestamp::unix_millis;

/// A cache and its limits.
pub(crate) struct Cache {
    file: &'static str,
    /// Entries that are kept; of more, the oldest go.
    max_entries: usize,
    /// Bytes of the longest value that is kept.
    max_bytes: usize,
    max_age: Duration,
    /// How long another process may hold the lock.
    lock_timeout: Duration,
}

/// The protocol version that a server spoke last, so that the next connection begins with it.
pub(crate) const VERSIONS: Cache = Cache {
    file: "versions.json",
    max_entries: 500,
    max_bytes: 100,
    max_age: Duration::from_secs(30 * 24 * 3600),
    lock_timeout: Duration::from_secs(10),
};

/// What servers listed, so that completing a word does not connect each time.
pub(crate) const LISTS: Cache = Cache {
    file: "listings.json",
    max_entries: 32,
    max_bytes: 256 << 10,
    max_age: Duration::from_secs(180),
    // A list is not worth a wait.
    lock_timeout: Duration::from_millis(50),
};

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// When it was written, in milliseconds since 1970.
    time: u64,
    value: Box<RawValue>,
}

impl Cache {
    /// The value of a key, unless it is too old.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        folder: &StateFolder,
        key: &str,
        now: SystemTime,
    ) -> Option<T> {
        let entries = self.load(folder);
        let entry = entries.get(key).filter(|entry| self.is_fresh(entry, now))?;
        serde_json::from_str(entry.value.get()).ok()
    }

    /// Keeps a value; one that is too long is not kept.
    pub(crate) fn put<T: Serialize + ?Sized>(
        &self,
        folder: &StateFolder,
        key: &str,
        value: &T,
        now: SystemTime,
    ) -> Result<()> {
        let value = to_raw_value(value).context("cannot write the cache")?;
        if value.get().len() > self.max_bytes {
            return Ok(());
        }
        let _locked = folder.lock_within(self.lock_timeout)?;
        let mut entries = self.load(folder);
        entries.retain(|_, entry| self.is_fresh(entry, now));
        entries.insert(key.to_owned(), Entry { time: unix_millis(now), value });
        while entries.len() > self.max_entries {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.time).map(|(key, _)| key.clone());
            oldest.map(|key| entries.remove(&key));
        }
        folder.replace(self.file, &serde_json::to_vec(&entries).context("cannot write the cache")?)
    }

    /// An entry from the future is as old as one from the past: the clock was set.
    fn is_fresh(&self, entry: &Entry, now: SystemTime) -> bool {
        u128::from(unix_millis(now).abs_diff(entry.time)) <= self.max_age.as_millis()
    }

    fn load(&self, folder: &StateFolder) -> BTreeMap<String, Entry> {
        let content = folder.read(self.file).ok().flatten();
        content.and_then(|content| serde_json::from_slice(&content).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn values_are_kept_for_a_while() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for cache in [VERSIONS, LISTS] {
            let found = |key: &str, now| cache.get::<Vec<String>>(&folder, key, now);
            assert_eq!(found("a", now), None);
            for value in ["1", "2"] {
                cache.put(&folder, "a", &[value], now).unwrap();
                assert_eq!(found("a", now).unwrap(), [value]);
            }
            assert_eq!(found("b", now), None);
            assert_eq!(found("a", now + cache.max_age).unwrap(), ["2"]);
            assert_eq!(found("a", now + cache.max_age + Duration::from_millis(1)), None);
            assert_eq!(found("a", now - cache.max_age - Duration::from_millis(1)), None);
        }
    }

    #[test]
    fn the_file_stays_small() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let at = |second: usize| UNIX_EPOCH + Duration::from_secs(second as u64);
        let found = |key: &str, second| LISTS.get::<String>(&folder, key, at(second));
        for number in 0..=LISTS.max_entries {
            LISTS.put(&folder, &number.to_string(), "x", at(number)).unwrap();
        }
        assert_eq!(LISTS.load(&folder).len(), LISTS.max_entries);
        assert_eq!((found("0", 0), found("1", 1)), (None, Some("x".to_owned())));
        LISTS.put(&folder, "long", &"x".repeat(LISTS.max_bytes), at(0)).unwrap();
        assert_eq!(found("long", 0), None);
    }

    #[test]
    fn a_damaged_file_is_begun_again() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let found = || VERSIONS.get::<String>(&folder, "a", UNIX_EPOCH);
        for damaged in
            ["", "{", "{\"a\":{\"revision\":\"1999-01-01\",\"time\":0}}", "{\"a\":{\"value\":1,\"time\":0}}"]
        {
            fs::write(temporary.path().join(VERSIONS.file), damaged).unwrap();
            assert_eq!(found(), None, "{damaged}");
        }
        VERSIONS.put(&folder, "a", "2", UNIX_EPOCH).unwrap();
        assert_eq!(found().as_deref(), Some("2"));
    }
}
