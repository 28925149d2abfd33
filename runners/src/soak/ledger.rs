//! What became of the calls of good clients: each is answered once with what it sent, or refused for lack of room.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Faults whose text is kept.
const SHOWN: usize = 20;

#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    clients: BTreeMap<&'static str, Counts>,
    faults: Vec<String>,
}

/// Calls of the clients of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) answered: u64,
    /// With 429 or 503.
    pub(super) refused: u64,
    pub(super) failed: u64,
}

impl Ledger {
    pub(super) fn answered(&self, client: &'static str) {
        self.entries().clients.entry(client).or_default().answered += 1;
    }

    pub(super) fn refused(&self, client: &'static str) {
        self.entries().clients.entry(client).or_default().refused += 1;
    }

    pub(super) fn failed(&self, client: &'static str, error: &anyhow::Error) {
        let mut entries = self.entries();
        entries.clients.entry(client).or_default().failed += 1;
        if entries.faults.len() < SHOWN {
            entries.faults.push(format!("{client}: {error:#}"));
        }
    }

    pub(super) fn clients(&self) -> Vec<(&'static str, Counts)> {
        self.entries().clients.iter().map(|(client, counts)| (*client, *counts)).collect()
    }

    pub(super) fn total(&self) -> Counts {
        let add = |sum: Counts, (_, counts): (_, Counts)| Counts {
            answered: sum.answered + counts.answered,
            refused: sum.refused + counts.refused,
            failed: sum.failed + counts.failed,
        };
        self.clients().into_iter().fold(Counts::default(), add)
    }

    /// The first faults.
    pub(super) fn faults(&self) -> Vec<String> {
        self.entries().faults.clone()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn calls_are_counted_by_kind_and_in_all() {
        let ledger = Ledger::default();
        ledger.answered("one");
        ledger.refused("one");
        ledger.failed("other", &anyhow!("broken"));
        assert_eq!(ledger.total(), Counts { answered: 1, refused: 1, failed: 1 });
        assert_eq!(ledger.clients()[1], ("other", Counts { answered: 0, refused: 0, failed: 1 }));
        assert_eq!(ledger.faults(), ["other: broken"]);
    }
}
