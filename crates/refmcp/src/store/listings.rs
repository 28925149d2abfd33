//! What servers listed a short while ago, so that completing a word does not connect each time. It is a memory and no
//! promise: what is lost or damaged is asked for again.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use ring::digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::folder::StateFolder;
use super::moment;

/// The file of lists.
const FILE: &str = "listings.json";

/// Lists that are kept; of more, the oldest go.
const MOST: usize = 32;

/// Bytes of the longest list that is kept.
const LONGEST_LIST: usize = 256 << 10;

/// How long a list is good for.
const AGE: Duration = Duration::from_secs(180);

/// How long another process may change what is kept: a list is not worth a wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// Which list of which server. What decides which server it is may hold secrets, so only its hash is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key(String);

impl Key {
    /// The list that this method gives.
    pub(crate) fn new(server: &str, method: &str) -> Self {
        let hash = digest::digest(&digest::SHA256, format!("{method}\n{server}").as_bytes());
        Self(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// When it was listed, in milliseconds since 1970.
    time: u64,
    list: Box<RawValue>,
}

/// The list, if it was kept a short while ago.
pub(crate) fn recall<T: DeserializeOwned>(
    folder: &StateFolder,
    key: &Key,
    now: SystemTime,
) -> Option<Vec<T>> {
    let lists = load(folder);
    let kept = lists.get(&key.0).filter(|kept| is_good(kept, now))?;
    serde_json::from_str(kept.list.get()).ok()
}

/// Keeps a list for a short while.
///
/// # Errors
///
/// It cannot be written.
pub(crate) fn keep<T: Serialize>(folder: &StateFolder, key: &Key, list: &[T], now: SystemTime) -> Result<()> {
    let list = serde_json::value::to_raw_value(list).context("cannot write down the list")?;
    if list.get().len() > LONGEST_LIST {
        return Ok(());
    }
    let _locked = folder.lock_within(PATIENCE)?;
    let mut lists = load(folder);
    lists.retain(|_, kept| is_good(kept, now));
    lists.insert(key.0.clone(), Kept { time: moment::millis(now), list });
    while lists.len() > MOST {
        let oldest = lists.iter().min_by_key(|(_, kept)| kept.time).map(|(key, _)| key.clone());
        oldest.map(|key| lists.remove(&key));
    }
    folder.replace(FILE, &serde_json::to_vec(&lists).context("cannot write down the list")?)
}

/// A list from the future is as old as one from the past: the clock was set.
fn is_good(kept: &Kept, now: SystemTime) -> bool {
    u128::from(moment::millis(now).abs_diff(kept.time)) <= AGE.as_millis()
}

fn load(folder: &StateFolder) -> BTreeMap<String, Kept> {
    let content = folder.read(FILE).ok().flatten();
    content.and_then(|content| serde_json::from_slice(&content).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn lists_are_kept_for_a_short_while() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let key = Key::new("server?key=HUSH", "tools/list");
        let found = |key: &Key, now| recall::<String>(&folder, key, now);
        assert_eq!(found(&key, now), None);
        keep(&folder, &key, &["a", "b"], now).unwrap();
        assert_eq!(found(&key, now + AGE).unwrap(), ["a", "b"]);
        assert_eq!(found(&key, now + AGE + Duration::from_millis(1)), None);
        assert_eq!(found(&key, now - AGE - Duration::from_millis(1)), None);
        for other in [Key::new("server?key=HUSH", "prompts/list"), Key::new("other", "tools/list")] {
            assert_eq!(found(&other, now), None);
        }
        let path = temporary.path().join(FILE);
        assert!(!fs::read_to_string(&path).unwrap().contains("HUSH"));
        fs::write(&path, "{").unwrap();
        assert_eq!(found(&key, now), None);
        keep(&folder, &key, &["c"], now).unwrap();
        assert_eq!(found(&key, now).unwrap(), ["c"]);
    }

    #[test]
    fn the_file_stays_small() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let at = |second: usize| UNIX_EPOCH + Duration::from_secs(second as u64);
        for number in 0..=MOST {
            keep(&folder, &Key::new(&number.to_string(), "m"), &["x"], at(number)).unwrap();
        }
        assert_eq!(load(&folder).len(), MOST);
        assert_eq!(recall::<String>(&folder, &Key::new("0", "m"), at(0)), None);
        let long = ["x".repeat(LONGEST_LIST)];
        keep(&folder, &Key::new("long", "m"), &long, at(MOST)).unwrap();
        assert_eq!(recall::<String>(&folder, &Key::new("long", "m"), at(MOST)), None);
    }
}
