//! What a check has found.

use std::fmt;

use refmcp_audit::auditor::Features;
use refmcp_proto::revision::{Revision, RevisionSet};
use refmcp_proto::rule::{Level, Rule};

use crate::requirements::is_required;

/// What was sent, and what came back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// What was sent: a message, or an HTTP request.
    pub request: String,
    /// What came back; empty where nothing did.
    pub answer: String,
    /// A command line that sends the same.
    pub repeat: String,
}

/// Bytes that are kept of what was sent, and of what came back.
const MAX_TEXT: usize = 8 << 10;

impl Exchange {
    pub(crate) fn set_request(&mut self, text: &str) {
        self.request = shortened(text, MAX_TEXT);
    }

    pub(crate) fn add_answer(&mut self, text: &str) {
        let room = MAX_TEXT.saturating_sub(self.answer.len());
        if room > 0 {
            if !self.answer.is_empty() {
                self.answer.push('\n');
            }
            self.answer += &shortened(text, room);
        }
    }
}

/// The beginning of a text.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let (kept, _) = text.split_at(text.floor_char_boundary(limit));
    format!("{kept}…")
}

/// How a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckViolation {
    /// What the server did.
    pub what: String,
    /// What it should do instead.
    pub expected: String,
    /// The request and the answer that show it.
    pub exchange: Exchange,
}

/// What was found out about one rule by one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The server kept the rule.
    Kept,
    /// The server broke it.
    Broken(Box<CheckViolation>),
    /// It does not apply to what the server offers, or may not be tried; why.
    Skipped(String),
    /// It should have been found out and could not be; why.
    NotVerified(String),
}

impl Outcome {
    /// Whether two outcomes say the same; they may have different exchanges.
    fn says_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Broken(one), Self::Broken(other)) => {
                (&one.what, &one.expected) == (&other.what, &other.expected)
            }
            _ => self == other,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => f.write_str("kept"),
            Self::Broken(violation) => write!(f, "broken: {}; {}", violation.what, violation.expected),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::NotVerified(why) => write!(f, "not verified: {why}"),
        }
    }
}

/// A rule, a probe, a revision, and what was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The rule.
    pub rule: &'static Rule,
    /// The name of the probe; `audit` where the auditor judged what passed.
    pub probe: &'static str,
    /// The revision that was spoken.
    pub revision: Revision,
    /// What was found out.
    pub outcome: Outcome,
}

impl CheckResult {
    /// How the rule was broken, if it was.
    pub fn violation(&self) -> Option<&CheckViolation> {
        match &self.outcome {
            Outcome::Broken(violation) => Some(violation),
            _ => None,
        }
    }

    /// Whether the server broke a requirement of the revision.
    pub fn breaks_must(&self) -> bool {
        self.violation().is_some()
            && matches!(self.rule.level, Level::Must | Level::May)
            && is_required(self.rule, self.revision)
    }
}

/// What a check has found.
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// The name and version of the server, as it says.
    pub server: String,
    /// Where it is or how it is started, without secrets.
    pub target: String,
    /// The transport.
    pub transport: &'static str,
    /// The revisions that it speaks, among those that were asked for.
    pub revisions: RevisionSet,
    /// The revisions that were asked for and cannot be checked, and why.
    pub unsupported: Vec<(Revision, String)>,
    /// Whether the server refused the check for want of authorization.
    pub wants_authorization: bool,
    /// Every result, by probe and revision.
    pub results: Vec<CheckResult>,
    /// The rules that were to be judged, whether or not there are results.
    pub rules: Vec<&'static Rule>,
    /// What the server was seen to do with features of the protocol.
    pub features: Features,
}

impl CheckReport {
    /// The results of rules that were broken.
    pub fn broken(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| result.violation().is_some())
    }

    /// The results of rules that were broken and that the specification demands.
    pub fn broken_musts(&self) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(|result| result.breaks_must())
    }

    /// Whether anything was found out at all, beside how the server refuses clients without authorization.
    pub fn is_verified(&self) -> bool {
        self.revisions.iter().next().is_some()
            && self.results.iter().any(|result| matches!(result.outcome, Outcome::Kept | Outcome::Broken(_)))
    }

    /// How many results there are with this outcome.
    pub fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.results.iter().filter(|result| is(&result.outcome)).count()
    }

    /// Adds a result, unless the same is known.
    pub(crate) fn add(&mut self, result: CheckResult) {
        let same = |known: &CheckResult| {
            (known.rule.id, known.probe, known.revision) == (result.rule.id, result.probe, result.revision)
                && known.outcome.says_the_same(&result.outcome)
        };
        if !self.results.iter().any(same) {
            self.results.push(result);
        }
    }
}
