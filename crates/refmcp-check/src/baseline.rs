//! A baseline: violations that are known, so that a run fails for new ones alone.
//!
//! A line is the id of a rule, and the revision if it is for one alone; what follows `#` is for people. An entry whose rule the
//! server keeps by now is stale, and an error.

use std::fmt;

use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Rule};

use crate::report::{CheckReport, CheckResult, Outcome};

/// Findings that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    rule: &'static Rule,
    revision: Option<Revision>,
}

/// A line of a baseline that is no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the baseline: {why}")]
pub struct BaselineError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// A report held against a baseline.
#[derive(Debug)]
pub struct Compared<'a> {
    /// What is broken and not known.
    pub new: Vec<&'a CheckResult>,
    /// What is broken and known.
    pub known: Vec<&'a CheckResult>,
    /// Entries whose rule was kept, as they are written.
    pub stale: Vec<String>,
}

impl Baseline {
    /// Reads a baseline.
    ///
    /// # Errors
    /// A line is no entry.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |why: String| BaselineError { line: index + 1, why };
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(id) = words.next() else { continue };
            let rule = rule::find(id).ok_or_else(|| wrong(format!("{id:?} is no rule")))?;
            let revision = match words.next() {
                Some(word) => Some(word.parse().map_err(|_| wrong(format!("{word:?} is no revision")))?),
                None => None,
            };
            if let Some(more) = words.next() {
                return Err(wrong(format!("{more:?} is one word too many")));
            }
            entries.push(Entry { rule, revision });
        }
        Ok(Self { entries })
    }

    /// The baseline in which everything that a report found is known.
    pub fn of(report: &CheckReport) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        for result in report.broken() {
            let entry = Entry { rule: result.rule, revision: Some(result.revision) };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        Self { entries }
    }

    /// The same with what a report found in place of what it judged. Entries that it says nothing of are kept.
    #[must_use]
    pub fn updated(&self, report: &CheckReport) -> Self {
        let is_judged = |entry: &&Entry| {
            let mut about = report.results.iter().filter(|result| entry.is_about(result));
            about.any(|it| matches!(it.outcome, Outcome::Kept | Outcome::Broken(_)))
        };
        let mut entries: Vec<Entry> =
            self.entries.iter().filter(|entry| !is_judged(entry)).copied().collect();
        for entry in Self::of(report).entries {
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        Self { entries }
    }

    /// Tells what is new in a report, what is known, and what is stale in the baseline. An entry whose rule was not judged is
    /// not stale.
    pub fn compare<'a>(&self, report: &'a CheckReport) -> Compared<'a> {
        let is_known = |result: &&CheckResult| self.entries.iter().any(|entry| entry.is_about(result));
        let (known, new) = report.broken().partition(is_known);
        let is_stale = |entry: &&Entry| {
            let about = || report.results.iter().filter(|result| entry.is_about(result));
            about().all(|result| result.violation().is_none())
                && about().any(|result| result.outcome == Outcome::Kept)
        };
        let stale = self.entries.iter().filter(is_stale).map(ToString::to_string).collect();
        Compared { new, known, stale }
    }
}

impl Entry {
    fn is_about(&self, result: &CheckResult) -> bool {
        self.rule.id == result.rule.id && self.revision.is_none_or(|revision| revision == result.revision)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.id)?;
        match self.revision {
            Some(revision) => write!(f, " {}", revision.as_str()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CheckViolation, Exchange};

    fn report(results: &[(&'static Rule, bool)]) -> CheckReport {
        let result = |&(rule, broken): &(&'static Rule, bool)| {
            let violation = CheckViolation {
                what: String::new(),
                expected: String::new(),
                exchange: Exchange::default(),
            };
            let outcome = if broken { Outcome::Broken(Box::new(violation)) } else { Outcome::Kept };
            CheckResult { rule, probe: "a", revision: Revision::LATEST, outcome }
        };
        CheckReport { results: results.iter().map(result).collect(), ..CheckReport::default() }
    }

    #[test]
    fn known_violations_new_ones_and_stale_entries_are_told_apart() {
        let baseline = Baseline::parse("# known\nRPC-05\nRPC-07 # fixed\n\nRPC-02 # not judged\n").unwrap();
        let report = report(&[(&rule::RPC_05, true), (&rule::RPC_06, true), (&rule::RPC_07, false)]);
        let compared = baseline.compare(&report);
        let ids = |all: &[&CheckResult]| all.iter().map(|it| it.rule.id).collect::<Vec<_>>();
        assert_eq!(ids(&compared.new), ["RPC-06"]);
        assert_eq!(ids(&compared.known), ["RPC-05"]);
        assert_eq!(compared.stale, ["RPC-07"]);
    }

    #[test]
    fn an_entry_may_be_of_one_revision() {
        let other = Baseline::parse(&format!("RPC-05 {}", Revision::LATEST_SESSION.as_str())).unwrap();
        let report = report(&[(&rule::RPC_05, true)]);
        assert_eq!(other.compare(&report).new.len(), 1);
        let written = Baseline::of(&report);
        assert_eq!(Baseline::parse(&written.to_string()), Ok(written.clone()));
        assert!(written.compare(&report).new.is_empty());
    }

    #[test]
    fn an_update_keeps_what_was_not_judged() {
        let known = Baseline::parse("RPC-05\nRPC-07\nRPC-02\n").unwrap();
        assert_eq!(known.updated(&CheckReport::default()), known);
        let report = report(&[(&rule::RPC_05, false), (&rule::RPC_06, true), (&rule::RPC_07, true)]);
        let latest = Revision::LATEST;
        assert_eq!(known.updated(&report).to_string(), format!("RPC-02\nRPC-06 {latest}\nRPC-07 {latest}\n"));
    }

    #[test]
    fn lines_that_are_no_entries_are_named() {
        for (text, why) in
            [("\nRPC-5", "\"RPC-5\""), ("RPC-05 1", "no revision"), ("RPC-05 2025-06-18 x", "too many")]
        {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
