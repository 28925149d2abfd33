//! One rule in a report: what was found out about it, and each way in which it was broken.

use std::collections::BTreeMap;
use std::fmt;

use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::rule::Level;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::verdict::{Role, RuleOutcome, Verdict};

/// What one party did about one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleReport {
    /// The id of the rule.
    pub id: String,
    /// The party.
    pub party: Role,
    /// How strict the rule is.
    pub level: Level,
    /// What was found out.
    pub outcome: RuleOutcome,
    /// The rule in one sentence.
    pub text: String,
    /// Where the specification has it.
    pub link: String,
    /// How often it was kept.
    pub kept: u64,
    /// How often it was broken.
    pub broken: u64,
    /// The different ways in which it was broken; there may be more than are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ViolationReport>,
    /// Why it was neither kept nor broken, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it may be broken without failing anything: it is known, or no requirement of the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
    /// What a check found out in each revision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_revision: BTreeMap<String, RuleOutcome>,
}

/// One way in which a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViolationReport {
    /// What happened.
    pub what: String,
    /// What the party should do instead.
    pub expected: String,
    /// How often it happened so.
    pub count: u64,
    /// The revisions in which a check saw it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
    /// Where it happened first; none where it is about no single event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceReport>,
    /// What a check sent, and what came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeReport>,
}

/// A request of a check and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeReport {
    /// The name of the probe; `audit` where the auditor judged what passed.
    pub probe: String,
    /// What was sent: a message, or an HTTP request.
    pub request: String,
    /// What came back; empty where nothing did.
    pub answer: String,
    /// A command line that shows it again.
    pub repeat: String,
}

/// Where something is in the recordings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceReport {
    /// The recording; empty where it passed without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// The line of it, from 1; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u64,
    /// The number of the event over all recordings, from 1.
    pub event: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The connection, as the recording numbers it.
    pub connection: u64,
    /// The HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
    /// The message or the HTTP head; what is cut says how long it is.
    pub text: String,
}

impl ExchangeReport {
    /// What was sent, what came back and how to repeat it, each with its label.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let answer = if self.answer.is_empty() { "(nothing)" } else { &*self.answer };
        let parts = [("sent", &*self.request), ("answer", answer), ("repeat", &*self.repeat)];
        parts.into_iter().filter(|(_, part)| !part.is_empty())
    }
}

impl RuleReport {
    pub(super) fn new(verdict: &Verdict, is_audited: bool, violations: Vec<ViolationReport>) -> Self {
        let outcome = match verdict.outcome() {
            RuleOutcome::NotExercised if !is_audited => RuleOutcome::NotJudged,
            outcome => outcome,
        };
        let reason = crate::coverage::not_audited(verdict.rule).filter(|_| outcome == RuleOutcome::NotJudged);
        let Verdict { rule, role, kept, broken, .. } = *verdict;
        Self {
            id: rule.id.to_owned(),
            party: role,
            level: rule.level,
            outcome,
            text: rule.text.to_owned(),
            link: rule.link(),
            kept,
            broken,
            violations,
            reason: reason.map(str::to_owned),
            excuse: None,
            by_revision: BTreeMap::new(),
        }
    }

    /// Whether the specification demands what was not kept.
    pub fn breaks_must(&self) -> bool {
        self.outcome == RuleOutcome::Broken && self.is_demanded()
    }

    /// Whether the specification demands it, and nothing excuses it; the rest it recommends or describes.
    pub fn is_demanded(&self) -> bool {
        matches!(self.level, Level::Must | Level::May) && self.excuse.is_none()
    }

    /// How often it was broken in ways that are not listed, in words, if it was.
    pub(super) fn others(&self) -> Option<String> {
        let listed: u64 = self.violations.iter().map(|violation| violation.count).sum();
        let others = self.broken.checked_sub(listed).filter(|others| *others > 0)?;
        Some(format!("{} in other ways, which are not listed", super::counted(others, "time")))
    }
}

impl EvidenceReport {
    /// What it is, for people who have no recording to look it up in.
    fn message(&self) -> String {
        let Ok(message) = serde_json::from_str::<Value>(&self.text) else {
            let start = self.text.lines().next().filter(|line| !line.is_empty());
            return excerpt(start.unwrap_or("an event")).to_string();
        };
        let id = message.get("id").map(|id| format!(" with the id {id}")).unwrap_or_default();
        let what = match message.get("method").and_then(Value::as_str) {
            Some(method) if id.is_empty() => format!("the notification {method}"),
            Some(method) => format!("the request {method}{id}"),
            None if message.get("result").or_else(|| message.get("error")).is_some() => {
                format!("a response{id}")
            }
            None => "a message".to_owned(),
        };
        excerpt(&what).to_string()
    }
}

impl fmt::Display for EvidenceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message())?,
            line => write!(f, "{}:{line}", self.file)?,
        }
        write!(f, ", connection {}", self.connection)?;
        match self.stream {
            Some(stream) => write!(f, ", HTTP request {stream}"),
            None => Ok(()),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
