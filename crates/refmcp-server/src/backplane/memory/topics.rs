//! Topics with their generations, and one-time keys.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::later;
use crate::backplane::{OnceOutcome, TopicChanges};

/// All topics. They share one count, so one number says which changes of all of them are known.
#[derive(Debug, Default)]
pub(super) struct Topics {
    latest: u64,
    /// The newest generation of those that were forgotten: any unknown topic may have it.
    floor: u64,
    generations: HashMap<Arc<str>, u64>,
    newest_last: BTreeMap<u64, Arc<str>>,
    pub(super) news: Arc<Notify>,
}

impl Topics {
    pub(super) fn bump(&mut self, topic: &str, most: usize) -> u64 {
        self.latest += 1;
        let name = match self.generations.remove_entry(topic) {
            Some((name, generation)) => {
                self.newest_last.remove(&generation);
                name
            }
            None => topic.into(),
        };
        self.generations.insert(name.clone(), self.latest);
        self.newest_last.insert(self.latest, name);
        while self.generations.len() > most {
            let Some((generation, name)) = self.newest_last.pop_first() else { break };
            self.generations.remove(&name);
            self.floor = generation;
        }
        self.news.notify_waiters();
        self.latest
    }

    pub(super) fn latest(&self) -> u64 {
        self.latest
    }

    /// What has changed after a generation, if anything has.
    pub(super) fn changes(&self, after: u64) -> Option<TopicChanges> {
        // A number from the future was not given out here: its caller knows nothing about this state.
        let (after, missed) = if after > self.latest { (0, true) } else { (after, after < self.floor) };
        let changed = self.newest_last.range(after.saturating_add(1)..);
        let topics: Vec<_> = changed.map(|(generation, name)| (name.clone(), *generation)).collect();
        (missed || !topics.is_empty()).then_some(TopicChanges { topics, missed, latest: self.latest })
    }
}

/// The keys that were used and are still remembered.
#[derive(Debug, Default)]
pub(super) struct Keys {
    used: HashSet<[u8; 32]>,
    /// The same, the first to be forgotten first.
    by_expiry: BTreeSet<(Instant, [u8; 32])>,
}

impl Keys {
    pub(super) fn once(&mut self, key: [u8; 32], ttl: Duration, most: usize, now: Instant) -> OnceOutcome {
        self.sweep(now);
        if self.used.contains(&key) {
            return OnceOutcome::Again;
        }
        if self.used.len() >= most {
            return OnceOutcome::Full;
        }
        self.used.insert(key);
        self.by_expiry.insert((later(now, ttl), key));
        OnceOutcome::First
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((expires, key)) = self.by_expiry.first().copied() {
            if now < expires {
                break;
            }
            self.by_expiry.pop_first();
            self.used.remove(&key);
        }
        if self.used.is_empty() {
            // After a flood even the empty table would stay large.
            self.used.shrink_to_fit();
        }
    }
}
