//! What must hold after a run.

use std::time::Duration;

use super::Latency;
use super::ledger::{Counts, Ledger};
use super::sample::{MIB, Sample};
use crate::{Tally, shell};

/// Resident memory at any time, with a budget of 256 MiB for what is held for clients.
const MAX_RSS: f64 = 400e6;

/// Latency of the measured client.
const MAX_P99_MS: f64 = 50.0;

/// What stays of the memory that a crowd has used: a part of what was used before, and some MB.
const RSS_GROWTH: (f64, f64) = (1.1, 8e6);

/// The part of the most memory under load that the allocator may keep: pages of which a few bytes are in use.
const FRAGMENTED: f64 = 0.05;

/// What is held for a client that only has a connection.
const CONNECTION_BYTES: u64 = 64 << 10;

/// CPU time of a server without requests, of the time that passes.
const IDLE_CPU: f64 = 0.02;

/// What a run has found out.
pub(super) struct Findings<'a> {
    /// Before the load, after the warm-up; and after the load.
    pub(super) before: Sample,
    pub(super) after: Sample,
    /// While there was load.
    pub(super) loaded: &'a [Sample],
    /// Of the measured client while there was load, in milliseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// CPU time without requests, and how long that was measured.
    pub(super) idle: (Duration, Duration),
    pub(super) ledger: &'a Ledger,
    pub(super) log: &'a str,
    pub(super) latency: Latency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// Not reached, which does not fail the run.
    Warning,
}

struct Check {
    what: &'static str,
    wanted: String,
    measured: String,
    verdict: Verdict,
}

impl Check {
    fn new(what: &'static str, wanted: String, measured: String, passed: bool) -> Self {
        let verdict = if passed { Verdict::Passed } else { Verdict::Failed };
        Self { what, wanted, measured, verdict }
    }

    fn at_most(what: &'static str, most: f64, measured: f64, unit: &str) -> Self {
        Self::new(
            what,
            format!("at most {most:.1} {unit}"),
            format!("{measured:.1} {unit}"),
            measured <= most,
        )
    }
}

impl Findings<'_> {
    /// Prints every check, and counts them.
    pub(super) fn report(&self) -> Tally {
        let mut tally = Tally::default();
        println!();
        for (client, Counts { answered, refused, failed }) in self.ledger.clients() {
            println!("{client:<24} {answered:>8} answered {refused:>6} refused {failed:>6} failed");
        }
        for error in self.ledger.faults() {
            println!("{} {error}", shell::red("error:"));
        }
        println!();
        for Check { what, wanted, measured, verdict } in self.checks() {
            let shown = match verdict {
                Verdict::Passed => shell::green("ok"),
                Verdict::Failed => shell::red("FAILED"),
                Verdict::Warning => "warning".to_owned(),
            };
            println!("{what:<44} {measured:>24}   {wanted:<28} {shown}");
            tally += Tally {
                passed: usize::from(verdict != Verdict::Failed),
                failed: usize::from(verdict == Verdict::Failed),
            };
        }
        tally
    }

    fn checks(&self) -> Vec<Check> {
        let Self { before, after, loaded, ledger, .. } = self;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let most_rss = loaded.iter().map(|sample| mb(sample.rss)).fold(0.0, f64::max);
        let settled_rss = mb(before.rss) * RSS_GROWTH.0 + RSS_GROWTH.1 / 1e6 + most_rss * FRAGMENTED;
        let total = ledger.total();
        let idle_ms = self.idle.0.as_secs_f64() * 1e3;
        let mut checks = vec![
            Check::at_most("resident memory", MAX_RSS / 1e6, most_rss, "MB"),
            Check::new(
                "calls of good clients that failed",
                "0".to_owned(),
                format!("{} of {}", total.failed, total.answered + total.refused + total.failed),
                total.failed == 0 && total.answered > 0,
            ),
            Check::at_most("resident memory afterwards", settled_rss, mb(after.rss), "MB"),
            Check::at_most(
                "bytes held afterwards",
                (after.connections * CONNECTION_BYTES) as f64 / MIB,
                after.held as f64 / MIB,
                "MiB",
            ),
            Check::at_most("sessions afterwards", before.sessions as f64, after.sessions as f64, ""),
            Check::at_most("open files afterwards", before.fds as f64, after.fds as f64, ""),
            Check::at_most("threads afterwards", before.threads as f64, after.threads as f64, ""),
            Check::at_most("CPU time while idle", IDLE_CPU * self.idle.1.as_secs_f64() * 1e3, idle_ms, "ms"),
        ];
        let panics = self.log.lines().filter(|line| line.contains("panicked")).count();
        checks.push(Check::at_most("panics in the log", 0.0, panics as f64, ""));
        if self.latency != Latency::Unchecked {
            let mut check = Check::at_most("p99 of the measured client", MAX_P99_MS, self.p99, "ms");
            check.measured = format!("{} (p50 {:.1} ms)", check.measured, self.p50);
            if check.verdict == Verdict::Failed && self.latency == Latency::Warned {
                check.verdict = Verdict::Warning;
            }
            checks.push(check);
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which nothing went wrong.
    fn good<'a>(ledger: &'a Ledger, loaded: &'a [Sample]) -> Findings<'a> {
        ledger.answered("client");
        let sample =
            Sample { rss: 50_000_000, fds: 20, threads: 5, connections: 1, held: 1000, ..Sample::default() };
        Findings {
            before: sample,
            after: sample,
            loaded,
            p50: 1.0,
            p99: 20.0,
            idle: (Duration::from_millis(10), Duration::from_secs(5)),
            ledger,
            log: "listening",
            latency: Latency::Strict,
        }
    }

    fn failed(findings: &Findings<'_>) -> Vec<&'static str> {
        let checks = findings.checks().into_iter();
        checks.filter(|check| check.verdict == Verdict::Failed).map(|check| check.what).collect()
    }

    #[test]
    fn each_check_can_fail() {
        let ledger = Ledger::default();
        assert!(failed(&good(&ledger, &[])).is_empty());
        let sample = good(&ledger, &[]).after;
        for (what, after) in [
            ("resident memory afterwards", Sample { rss: 70_000_000, ..sample }),
            ("bytes held afterwards", Sample { held: 70_000, ..sample }),
            ("sessions afterwards", Sample { sessions: 1, ..sample }),
            ("open files afterwards", Sample { fds: 21, ..sample }),
            ("threads afterwards", Sample { threads: 6, ..sample }),
        ] {
            assert_eq!(failed(&Findings { after, ..good(&ledger, &[]) }), [what]);
        }
        let much = [Sample { rss: 401_000_000, ..sample }];
        assert_eq!(failed(&good(&ledger, &much)), ["resident memory"]);
        let idle = (Duration::from_millis(200), Duration::from_secs(5));
        assert_eq!(failed(&Findings { idle, ..good(&ledger, &[]) }), ["CPU time while idle"]);
        let log = "thread 'x' panicked at y";
        assert_eq!(failed(&Findings { log, ..good(&ledger, &[]) }), ["panics in the log"]);
        ledger.failed("client", &anyhow::anyhow!("no answer"));
        assert_eq!(failed(&good(&ledger, &[])), ["calls of good clients that failed"]);
    }

    #[test]
    fn latency_fails_a_run_only_where_that_is_asked_for() {
        let ledger = Ledger::default();
        for (latency, failures) in [(Latency::Strict, 1), (Latency::Warned, 0), (Latency::Unchecked, 0)] {
            let slow = Findings { p99: 51.0, latency, ..good(&ledger, &[]) };
            assert_eq!(failed(&slow).len(), failures, "{latency:?}");
        }
    }
}
