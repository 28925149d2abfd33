//! Findings of all sessions: counted by rule, and logged without a flood.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::finding::Finding;
use refmcp_proto::time::Timestamp;

/// Lines that are logged in one period; a client without a session can make the same mistake with every request.
const MOST_LINES: u32 = 20;
const PERIOD: Duration = Duration::from_secs(1);

/// What clients did wrong since the server was made.
#[derive(Debug, Default)]
pub(crate) struct FindingLog {
    counts: Mutex<BTreeMap<&'static str, u64>>,
    lines: Mutex<Lines>,
}

/// The lines of the present period.
#[derive(Debug, Default)]
struct Lines {
    since: Timestamp,
    written: u32,
}

impl FindingLog {
    /// Counts a finding and logs it: as a warning what the specification demands, as information the rest. What comes
    /// too often is logged for debugging only.
    pub(crate) fn record(&self, now: Timestamp, session: Option<u64>, finding: &Finding) {
        *self.counts.lock().entry(finding.rule).or_default() += 1;
        let Finding { rule, what } = finding;
        if !self.has_room(now) {
            tracing::debug!(session, rule, "{what}");
        } else if finding.is_violation() {
            tracing::warn!(session, rule, "{what}");
        } else {
            tracing::info!(session, rule, "{what}");
        }
    }

    /// How often clients broke which rule.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().clone()
    }

    fn has_room(&self, now: Timestamp) -> bool {
        let mut lines = self.lines.lock();
        if now - lines.since >= PERIOD {
            *lines = Lines { since: now, written: 0 };
        }
        lines.written = lines.written.saturating_add(1);
        lines.written <= MOST_LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_has_so_many_lines_and_all_are_counted() {
        let log = FindingLog::default();
        let start = Timestamp::from_millis(1_000_000);
        assert_eq!((0..1000).filter(|_| log.has_room(start)).count(), 20);
        assert!(!log.has_room(start + Duration::from_millis(999)));
        assert!(log.has_room(start + PERIOD));
        let finding = Finding { rule: "RPC-01", what: "x".into() };
        (0..100).for_each(|_| log.record(start, None, &finding));
        assert_eq!(log.counts(), [("RPC-01", 100)].into());
    }
}
