//! Statistics of calls and findings. Counting is always on: it costs two looks at the clock and three additions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::finding::{Finding, Findings};
use refmcp_proto::revision::Method;
use refmcp_proto::time::Timestamp;

use crate::method::CallOutcome;

/// Counts of calls and findings since the server was made.
#[derive(Debug, Default)]
pub struct Statistics {
    /// The methods of the protocol in their order, then [`OTHER_METHODS`].
    methods: [MethodStatistics; Method::COUNT + 1],
    /// The methods beyond the protocol that the server has.
    custom: BTreeMap<Arc<str>, MethodStatistics>,
    other_tools: Arc<MethodStatistics>,
    pub(crate) findings: FindingLog,
}

/// Tools that have numbers of their own. Each is a dozen and a half lines of the metrics, so there must be an end to it.
pub(crate) const MAX_TOOLS: usize = 256;

/// What the rest is called: tools of single sessions, tools beyond [`MAX_TOOLS`], tools that there are not.
pub(crate) const OTHER_TOOLS: &str = "(other)";

/// Methods that the server does not know are counted together, under this name.
pub(crate) const OTHER_METHODS: &str = "other";

/// Every way in which a call can end.
const OUTCOMES: [CallOutcome; 5] = [
    CallOutcome::Done,
    CallOutcome::ToolError,
    CallOutcome::Failed,
    CallOutcome::InputRequired,
    CallOutcome::Cancelled,
];

/// The calls of one method, or of one tool.
#[derive(Debug, Default)]
pub struct MethodStatistics {
    outcomes: [AtomicU64; OUTCOMES.len()],
    took: Histogram,
}

impl Statistics {
    /// Nothing is counted yet; the server has these methods beyond the protocol.
    pub(crate) fn new(custom: impl Iterator<Item = Arc<str>>) -> Self {
        Self { custom: custom.map(|name| (name, MethodStatistics::default())).collect(), ..Self::default() }
    }

    pub(crate) fn count(&self, method: Option<&Method>, outcome: CallOutcome, took: Sample) {
        let custom = match method {
            Some(Method::Custom(name)) => self.custom.get(name),
            _ => None,
        };
        let index = || method.and_then(Method::index).unwrap_or(Method::COUNT);
        custom.unwrap_or_else(|| &self.methods[index()]).count(outcome, took);
    }

    /// Counts a call of a tool; of one that has no numbers of its own among the others.
    pub(crate) fn count_tool(&self, tool: Option<&MethodStatistics>, outcome: CallOutcome, took: Sample) {
        tool.unwrap_or(&self.other_tools).count(outcome, took);
    }

    pub(crate) fn other_tools(&self) -> &Arc<MethodStatistics> {
        &self.other_tools
    }

    /// The calls of each method; of those that the server does not know together, as `other`.
    pub fn methods(&self) -> impl Iterator<Item = (&str, &MethodStatistics)> {
        let custom = self.custom.iter().map(|(name, statistics)| (&**name, statistics));
        let known = self.methods.iter().zip(Method::NAMES.into_iter().chain([OTHER_METHODS]));
        known.map(|(statistics, name)| (name, statistics)).chain(custom)
    }

    /// How often clients broke which rule.
    pub fn findings(&self) -> Findings {
        self.findings.all()
    }
}

impl MethodStatistics {
    fn count(&self, outcome: CallOutcome, took: Sample) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        self.took.add_sample(took);
    }

    /// How many calls ended in which way.
    pub fn outcomes(&self) -> impl Iterator<Item = (CallOutcome, u64)> {
        OUTCOMES.into_iter().map(|outcome| (outcome, self.outcomes[outcome as usize].load(Ordering::Relaxed)))
    }

    /// How long they took.
    pub fn took(&self) -> &Histogram {
        &self.took
    }
}

/// How many things took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The upper bounds of a histogram's buckets, in microseconds; the last bucket has none.
const BOUNDS: [u64; 13] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 30_000_000];

/// A duration with its bucket, found once for all histograms that it is added to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    micros: u64,
    bucket: usize,
}

impl From<Duration> for Sample {
    fn from(took: Duration) -> Self {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        Self { micros, bucket: BOUNDS.partition_point(|bound| *bound < micros) }
    }
}

impl Histogram {
    /// Adds one that took this long.
    pub fn add(&self, took: Duration) {
        self.add_sample(took.into());
    }

    fn add_sample(&self, Sample { micros, bucket }: Sample) {
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// For each bound in seconds, how many took no longer; the last bound is infinite, and so counts all.
    pub fn cumulative_buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        #[expect(clippy::cast_precision_loss, reason = "the bounds are small")]
        let bounds = BOUNDS.map(|micros| micros as f64 / 1e6);
        let mut sum = 0;
        bounds.into_iter().chain([f64::INFINITY]).zip(&self.counts).map(move |(bound, count)| {
            sum += count.load(Ordering::Relaxed);
            (bound, sum)
        })
    }

    /// How long all of them took together.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// Lines of one rule that are logged in one period; a client without a session can make the same mistake with every request,
/// and must not hide other mistakes.
const MAX_LINES: u32 = 20;
const PERIOD: Duration = Duration::from_secs(1);

/// What clients did wrong since the server was made.
#[derive(Debug, Default)]
pub(crate) struct FindingLog {
    findings: Mutex<Findings>,
    lines: Mutex<HashMap<&'static str, Lines>>,
}

/// The lines of a rule in the present period.
#[derive(Debug, Default)]
struct Lines {
    since: Timestamp,
    written: u32,
}

impl FindingLog {
    /// Counts a finding and logs it: as a warning what the specification demands, as information the rest. What comes
    /// too often, or was told already, is logged for debugging only.
    pub(crate) fn record(&self, now: Timestamp, session: Option<u64>, finding: &Finding, is_told: bool) {
        self.findings.lock().record(finding);
        let rule = finding.rule.id;
        if is_told || !self.has_room(rule, now) {
            tracing::debug!(session, rule, "{finding}");
        } else if finding.is_violation() {
            tracing::warn!(session, rule, "{finding}");
        } else {
            tracing::info!(session, rule, "{finding}");
        }
    }

    /// How often clients broke which rule, with the latest texts.
    pub(crate) fn all(&self) -> Findings {
        self.findings.lock().clone()
    }

    fn has_room(&self, rule: &'static str, now: Timestamp) -> bool {
        let mut rules = self.lines.lock();
        let lines = rules.entry(rule).or_default();
        if now - lines.since >= PERIOD {
            *lines = Lines { since: now, written: 0 };
        }
        lines.written = lines.written.saturating_add(1);
        lines.written <= MAX_LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up() {
        let histogram = Histogram::default();
        for micros in [1, 100, 101, 3_000, 60_000_000] {
            histogram.add(Duration::from_micros(micros));
        }
        let buckets: Vec<_> = histogram.cumulative_buckets().collect();
        assert_eq!(buckets[0], (0.0001, 2));
        assert_eq!(buckets[1], (0.00025, 3));
        assert_eq!(buckets[5], (0.005, 4));
        assert_eq!(*buckets.last().unwrap(), (f64::INFINITY, 5));
        assert_eq!(histogram.total(), Duration::from_micros(60_003_202));
    }

    #[test]
    fn endings_are_counted_in_their_own_places() {
        let statistics = Statistics::new(["mine", "unused"].map(Arc::from).into_iter());
        for outcome in OUTCOMES {
            statistics.count(Some(&Method::CallTool), outcome, Duration::ZERO.into());
        }
        statistics.count(None, CallOutcome::Failed, Duration::ZERO.into());
        for _ in 0..2 {
            statistics.count(Some(&Method::Custom("mine".into())), CallOutcome::Done, Duration::ZERO.into());
        }
        for (name, method) in statistics.methods() {
            let all: u64 = method.outcomes().map(|(_, count)| count).sum();
            assert_eq!(
                all,
                match name {
                    "tools/call" => 5,
                    "other" => 1,
                    "mine" => 2,
                    _ => 0,
                },
                "{name}"
            );
        }
        let tool = MethodStatistics::default();
        statistics.count_tool(Some(&tool), CallOutcome::Done, Duration::from_secs(1).into());
        statistics.count_tool(None, CallOutcome::Failed, Duration::ZERO.into());
        let ended = |of: &MethodStatistics| of.outcomes().map(|(_, count)| count).collect::<Vec<_>>();
        assert_eq!((ended(&tool), tool.took().total()), (vec![1, 0, 0, 0, 0], Duration::from_secs(1)));
        assert_eq!(ended(statistics.other_tools()), [0, 0, 1, 0, 0]);
        let names: Vec<_> = statistics.methods().map(|(name, _)| name).collect();
        assert!(names[..Method::COUNT].iter().all(|name| Method::known(name).is_some()));
        assert_eq!(names[Method::COUNT..], [OTHER_METHODS, "mine", "unused"]);
    }

    #[test]
    fn a_period_has_so_many_lines_and_all_are_counted() {
        let log = FindingLog::default();
        let start = Timestamp::from_millis(1_000_000);
        assert_eq!((0..1000).filter(|_| log.has_room("RPC-01", start)).count(), 20);
        assert!(log.has_room("RPC-02", start), "a rule hides no other");
        assert!(!log.has_room("RPC-01", start + Duration::from_millis(999)));
        assert!(log.has_room("RPC-01", start + PERIOD));
        let finding = Finding::new(&refmcp_proto::rule::RPC_01, "x", "y");
        (0..100).for_each(|_| log.record(start, None, &finding, false));
        assert_eq!(log.all().iter().next().map(|found| found.count), Some(100));
    }
}
