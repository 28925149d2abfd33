//! Which revision a server spoke the last time, so that the next time begins with it. It is a memory and no promise:
//! when it is lost or wrong, the server is asked again.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use refmcp_proto::revision::Revision;
use serde::{Deserialize, Serialize};

use super::folder::StateFolder;
use super::moment;

/// The file of what is remembered.
const FILE: &str = "eras.json";

/// Servers that are remembered; of more, the oldest go.
const MOST: usize = 500;

/// How long a server is remembered.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Memory {
    revision: String,
    /// When it was spoken, in milliseconds since 1970.
    time: u64,
}

type Memories = BTreeMap<String, Memory>;

/// The revision that a server spoke, if it is remembered.
pub(crate) fn recall(folder: &StateFolder, target: &str, now: SystemTime) -> Option<Revision> {
    let memories = load(folder);
    let memory = memories.get(target)?;
    let age = moment::millis(now).saturating_sub(memory.time);
    let revision = Revision::ALL.into_iter().find(|revision| revision.as_str() == memory.revision)?;
    (u128::from(age) <= LONGEST.as_millis()).then_some(revision)
}

/// Remembers the revision that a server speaks.
///
/// # Errors
///
/// It cannot be written.
pub(crate) fn remember(
    folder: &StateFolder,
    target: &str,
    revision: Revision,
    now: SystemTime,
) -> Result<()> {
    let _locked = folder.lock()?;
    let mut memories = load(folder);
    let memory = Memory { revision: revision.as_str().to_owned(), time: moment::millis(now) };
    memories.insert(target.to_owned(), memory);
    while memories.len() > MOST {
        let oldest = memories.iter().min_by_key(|(_, memory)| memory.time).map(|(target, _)| target.clone());
        oldest.map(|target| memories.remove(&target));
    }
    let content = serde_json::to_vec(&memories).context("cannot write down the revision")?;
    folder.replace(FILE, &content)
}

/// What is remembered; nothing, when it cannot be read.
fn load(folder: &StateFolder) -> Memories {
    let read = folder.read(FILE).and_then(|content| {
        Ok(content.map(|content| serde_json::from_slice(&content)).transpose()?.unwrap_or_default())
    });
    read.unwrap_or_else(|fault| {
        tracing::debug!(%fault, "which revisions servers speak is forgotten");
        Memories::new()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn servers_are_remembered_for_a_while() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(recall(&folder, "a", now), None);
        for revision in [Revision::LATEST, Revision::LATEST_SESSION] {
            remember(&folder, "a", revision, now).unwrap();
            assert_eq!(recall(&folder, "a", now), Some(revision));
        }
        assert_eq!(recall(&folder, "b", now), None);
        assert_eq!(recall(&folder, "a", now + LONGEST), Some(Revision::LATEST_SESSION));
        assert_eq!(recall(&folder, "a", now + LONGEST + Duration::from_secs(1)), None);
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let at = |second: usize| UNIX_EPOCH + Duration::from_secs(second as u64);
        let memories: Memories = (0..MOST)
            .map(|number| {
                let memory =
                    Memory { revision: Revision::LATEST.as_str().to_owned(), time: number as u64 * 1000 };
                (format!("t{number}"), memory)
            })
            .collect();
        folder.replace(FILE, &serde_json::to_vec(&memories).unwrap()).unwrap();
        remember(&folder, "new", Revision::LATEST, at(MOST)).unwrap();
        assert_eq!(recall(&folder, "t0", at(MOST)), None);
        assert_eq!(recall(&folder, "t1", at(MOST)), Some(Revision::LATEST));
        assert_eq!(load(&folder).len(), MOST);
    }

    #[test]
    fn a_damaged_file_is_begun_again() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        for damaged in ["", "{", "{\"a\":{\"revision\":\"1999-01-01\",\"time\":0}}"] {
            fs::write(temporary.path().join(FILE), damaged).unwrap();
            assert_eq!(recall(&folder, "a", UNIX_EPOCH), None, "{damaged}");
        }
        remember(&folder, "a", Revision::LATEST, UNIX_EPOCH).unwrap();
        assert_eq!(recall(&folder, "a", UNIX_EPOCH), Some(Revision::LATEST));
    }
}
