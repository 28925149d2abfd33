//! Findings: what a peer did against a rule of the specification, whether or not it was served.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use crate::revision::Revision;
use crate::rule::{Level, Rule};

/// A rule that a peer broke, how, and what it should do instead. Its text is `what; expected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What happened, for a person.
    pub what: Cow<'static, str>,
    /// What the peer should send or do instead.
    pub expected: Cow<'static, str>,
}

impl Finding {
    /// A finding about a rule of the catalogue.
    ///
    /// ```
    /// use refmcp_proto::{finding::Finding, rule};
    ///
    /// let finding = Finding::new(&rule::RPC_07, "a notification with an id", "send it without");
    /// assert_eq!(finding.to_string(), "a notification with an id; send it without");
    /// assert!(finding.is_violation());
    /// ```
    pub fn new(
        rule: &'static Rule,
        what: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { rule, what: short(what.into()), expected: short(expected.into()) }
    }

    /// Whether this revision has the rule; an unknown revision may.
    pub fn is_of(&self, revision: Option<Revision>) -> bool {
        revision.is_none_or(|revision| self.rule.revisions.contains(revision))
    }

    /// Whether the specification demands what was not kept, and does not only recommend or describe it. What it permits, it
    /// permits under conditions: these were not kept.
    pub fn is_violation(&self) -> bool {
        matches!(self.rule.level, Level::Must | Level::May)
    }
}

/// A text with at most [`MAX_TEXT`] bytes: what a peer has sent may be a part of it, and it is kept.
fn short(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    text.get(..end).map_or(text.clone(), |beginning| format!("{beginning}…").into())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.expected)
    }
}

/// Bytes of each of the two texts of a finding.
const MAX_TEXT: usize = 512;

/// The latest texts that are kept of a rule.
const MAX_TEXTS: usize = 4;

/// The different texts of a rule that are reported; a peer whose mistakes differ each time is reported this often.
const MAX_REPORTED: u32 = 16;

/// The findings of one session, or of a server: a count and the latest texts of each rule, so that a noisy peer fills no
/// memory.
#[derive(Debug, Clone, Default)]
pub struct Findings(Vec<RuleFindings>);

/// The findings about one rule.
#[derive(Debug, Clone)]
pub struct RuleFindings {
    /// The rule.
    pub rule: &'static Rule,
    /// How often it was broken.
    pub count: u64,
    /// The latest different texts, the newest last.
    pub texts: VecDeque<String>,
    reported: u32,
}

impl Findings {
    /// Records a finding; `true` when its text is new and should be reported.
    pub fn record(&mut self, finding: &Finding) -> bool {
        let at = self.0.iter().position(|known| known.rule.id == finding.rule.id);
        let at = at.unwrap_or_else(|| {
            let rule = finding.rule;
            self.0.push(RuleFindings { rule, count: 0, texts: VecDeque::new(), reported: 0 });
            self.0.len() - 1
        });
        self.0.get_mut(at).is_some_and(|known| known.record(finding.to_string()))
    }

    /// The rules that were broken, in the order in which they first were.
    pub fn iter(&self) -> impl Iterator<Item = &RuleFindings> {
        self.0.iter()
    }
}

impl RuleFindings {
    fn record(&mut self, text: String) -> bool {
        self.count += 1;
        if self.texts.contains(&text) {
            return false;
        }
        if self.texts.len() == MAX_TEXTS {
            self.texts.pop_front();
        }
        self.texts.push_back(text);
        self.reported = self.reported.saturating_add(1);
        self.reported <= MAX_REPORTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;

    #[test]
    fn repeats_are_counted_not_reported() {
        let mut findings = Findings::default();
        let finding = Finding::new(&rule::LIFE_03, "too early", "wait");
        assert!(findings.record(&finding));
        assert!(!findings.record(&finding));
        let kept: Vec<_> = findings.iter().map(|known| (known.rule.id, known.count)).collect();
        assert_eq!(kept, [("LIFE-03", 2)]);
    }

    #[test]
    fn texts_of_a_rule_are_kept_up_to_a_limit() {
        let mut findings = Findings::default();
        let reported = (0..1000).filter(|number| {
            let what = format!("an answer to {number}");
            findings.record(&Finding::new(&rule::RPC_05, what, "none"))
        });
        assert_eq!(reported.count(), 16);
        let known = findings.iter().next().unwrap();
        assert_eq!((known.count, known.texts.len()), (1000, 4));
        assert_eq!(known.texts.back().unwrap(), "an answer to 999; none");
    }

    #[test]
    fn recommended_rules_are_no_violations() {
        let found = |rule| Finding::new(rule, "", "").is_violation();
        assert!(found(&rule::CANC_01) && found(&rule::LIFE_02) && found(&rule::HTTP_13));
        assert!(!found(&rule::TOOL_02) && !found(&rule::RPC_10));
    }
}
