//! Verdicts: of each rule, whether a party kept it, broke it, or was never in its situation.

use std::collections::BTreeMap;
use std::fmt;

use refmcp_proto::revision::RevisionSet;
use refmcp_proto::rule::{self, Level, Party, Rule};
use refmcp_transport::observer::{Direction, Side};
use serde::{Deserialize, Serialize};

/// A party of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Role {
    /// The other party.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The sender of what passed in this direction, as a process of this side sees it.
    pub(crate) const fn sender(side: Side, direction: Direction) -> Self {
        match (side, direction) {
            (Side::Client, Direction::Sent) | (Side::Server, Direction::Received) => Self::Client,
            (Side::Client, Direction::Received) | (Side::Server, Direction::Sent) => Self::Server,
        }
    }

    /// Whether a rule can bind this party.
    pub const fn is_bound_by(self, rule: &Rule) -> bool {
        match rule.party {
            // What a host does is on the wire as what its client does.
            Party::Client | Party::Host => matches!(self, Self::Client),
            Party::Server => matches!(self, Self::Server),
            Party::Both | Party::Requestor | Party::Receiver => true,
            Party::Proxy | Party::AuthorizationServer | Party::View | Party::Sandbox => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// What was found out about a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RuleOutcome {
    /// The party broke it at least once.
    Broken,
    /// The party was in the rule's situation and kept it.
    Kept,
    /// It should have been found out and could not be.
    NotVerified,
    /// The rule's situation did not arise, or may not be brought about.
    NotExercised,
    /// What passes does not show whether it is kept.
    NotJudged,
}

impl RuleOutcome {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Broken, Self::Kept, Self::NotVerified, Self::NotExercised, Self::NotJudged];

    /// Its name as a heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Broken => "Broken",
            Self::Kept => "Kept",
            Self::NotVerified => "Not verified",
            Self::NotExercised => "Not exercised",
            Self::NotJudged => "Not judged",
        }
    }

    /// Whether the party was in the rule's situation.
    pub fn is_judged(self) -> bool {
        matches!(self, Self::Broken | Self::Kept)
    }
}

impl fmt::Display for RuleOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken => "broken",
            Self::Kept => "kept",
            Self::NotVerified => "not verified",
            Self::NotExercised => "not exercised",
            Self::NotJudged => "not judged",
        })
    }
}

/// What one party did about one rule.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The rule.
    pub rule: &'static Rule,
    /// The party.
    pub role: Role,
    /// How often it was kept.
    pub kept: u64,
    /// How often it was broken.
    pub broken: u64,
    /// The different ways in which it was broken, at most [`MAX_VIOLATIONS`].
    pub violations: Vec<Violation>,
}

/// One way in which a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What happened, for a person.
    pub what: String,
    /// What the party should do instead.
    pub expected: String,
    /// How often it happened so.
    pub count: u64,
    /// Where it happened first.
    pub evidence: Evidence,
}

/// Where something is in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The number of the event among those that the auditor was given, from 1; 0 where it is about no single one.
    pub event: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The connection.
    pub connection: u64,
    /// The HTTP request, where there is one.
    pub stream: Option<u64>,
    /// The message or the HTTP head, at most [`MAX_EVIDENCE`] bytes of it.
    pub text: String,
}

/// Different violations that are kept for one rule and party; further ones are counted.
pub const MAX_VIOLATIONS: usize = 16;

/// Bytes of the text of an [`Evidence`].
pub const MAX_EVIDENCE: usize = 2048;

impl Verdict {
    /// The verdict on a rule whose situation did not arise.
    pub(crate) fn unexercised(rule: &'static Rule, role: Role) -> Self {
        Self { rule, role, kept: 0, broken: 0, violations: Vec::new() }
    }

    /// Kept, broken or not exercised.
    pub fn outcome(&self) -> RuleOutcome {
        match (self.broken, self.kept) {
            (0, 0) => RuleOutcome::NotExercised,
            (0, _) => RuleOutcome::Kept,
            _ => RuleOutcome::Broken,
        }
    }

    /// Whether the specification demands what was not kept.
    pub fn breaks_must(&self) -> bool {
        self.broken > 0 && matches!(self.rule.level, Level::Must | Level::May)
    }

    fn add(&mut self, other: Self) {
        self.kept += other.kept;
        for violation in other.violations {
            self.add_violation(violation);
        }
        self.broken += other.broken;
    }

    fn add_violation(&mut self, violation: Violation) {
        let known =
            |known: &&mut Violation| known.what == violation.what && known.expected == violation.expected;
        if let Some(known) = self.violations.iter_mut().find(known) {
            known.count += violation.count;
        } else if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(violation);
        }
    }
}

/// The verdicts on the parties of one conversation, or of several between the same parties.
#[derive(Debug, Clone, Default)]
pub struct Verdicts {
    by_rule: BTreeMap<(&'static str, Role), Verdict>,
    /// Violations that were recorded and not yet taken by [`Verdicts::take_new`].
    new: Vec<(&'static str, Role, usize)>,
}

impl Verdicts {
    /// The party kept the rule.
    pub fn keep(&mut self, rule: &'static Rule, role: Role) {
        self.verdict(rule, role).kept += 1;
    }

    /// The party broke the rule.
    pub fn break_rule(&mut self, rule: &'static Rule, role: Role, violation: Violation) {
        let verdict = self.verdict(rule, role);
        let before = verdict.violations.len();
        verdict.broken += 1;
        verdict.add_violation(violation);
        if verdict.violations.len() > before {
            self.new.push((rule.id, role, before));
        }
    }

    /// Every rule that was kept or broken, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &Verdict> {
        self.by_rule.values()
    }

    /// The verdict on a rule, if its situation arose.
    pub fn get(&self, rule: &Rule, role: Role) -> Option<&Verdict> {
        self.by_rule.get(&(rule.id, role))
    }

    /// Every rule that binds this party in one of these revisions, in the order of the catalogue, exercised or not.
    pub fn all(&self, role: Role, revisions: RevisionSet) -> impl Iterator<Item = Verdict> {
        rule::all().filter(move |rule| role.is_bound_by(rule) && rule.revisions.intersects(revisions)).map(
            move |rule| self.get(rule, role).cloned().unwrap_or_else(|| Verdict::unexercised(rule, role)),
        )
    }

    /// The different violations since this was last called, each with its rule and party.
    pub fn take_new(&mut self) -> Vec<(&'static Rule, Role, Violation)> {
        let new = std::mem::take(&mut self.new);
        let violation = |(id, role, at): (&'static str, Role, usize)| {
            let verdict = self.by_rule.get(&(id, role))?;
            Some((verdict.rule, role, verdict.violations.get(at)?.clone()))
        };
        new.into_iter().filter_map(violation).collect()
    }

    /// Adds the verdicts on the same parties from another conversation.
    pub fn merge(&mut self, other: Self) {
        for verdict in other.by_rule.into_values() {
            self.verdict(verdict.rule, verdict.role).add(verdict);
        }
    }

    /// Forgets the texts of evidence beyond so many bytes.
    pub(crate) fn limit_texts(&mut self, mut bytes: usize) {
        let violations = self.by_rule.values_mut().flat_map(|verdict| &mut verdict.violations);
        for Violation { evidence: Evidence { text, .. }, .. } in violations {
            match bytes.checked_sub(text.len()) {
                Some(left) => bytes = left,
                None => *text = String::new(),
            }
        }
    }

    fn verdict(&mut self, rule: &'static Rule, role: Role) -> &mut Verdict {
        self.by_rule.entry((rule.id, role)).or_insert_with(|| Verdict::unexercised(rule, role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(what: &str) -> Violation {
        let (what, expected) = (what.to_owned(), "none".to_owned());
        Violation { what, expected, count: 1, evidence: Evidence::default() }
    }

    #[test]
    fn each_different_violation_is_kept_and_repeats_are_counted() {
        let mut verdicts = Verdicts::default();
        for what in ["one", "two", "one"] {
            verdicts.break_rule(&rule::RPC_05, Role::Client, violation(what));
        }
        let verdict = verdicts.get(&rule::RPC_05, Role::Client).unwrap();
        assert_eq!((verdict.broken, verdict.outcome()), (3, RuleOutcome::Broken));
        let violations: Vec<_> = verdict.violations.iter().map(|it| (&*it.what, it.count)).collect();
        assert_eq!(violations, [("one", 2), ("two", 1)]);
        assert_eq!(verdicts.take_new().len(), 2);
        assert!(verdicts.take_new().is_empty());
    }

    #[test]
    fn violations_of_a_rule_are_limited() {
        let mut verdicts = Verdicts::default();
        for number in 0..1000 {
            verdicts.break_rule(&rule::RPC_05, Role::Client, violation(&number.to_string()));
        }
        let verdict = verdicts.get(&rule::RPC_05, Role::Client).unwrap();
        assert_eq!((verdict.broken, verdict.violations.len()), (1000, MAX_VIOLATIONS));
    }

    #[test]
    fn verdicts_of_several_conversations_add_up() {
        let mut one = Verdicts::default();
        one.keep(&rule::RPC_01, Role::Client);
        one.break_rule(&rule::RPC_05, Role::Client, violation("one"));
        let mut sum = one.clone();
        sum.merge(one);
        assert_eq!(sum.get(&rule::RPC_01, Role::Client).unwrap().kept, 2);
        let broken = sum.get(&rule::RPC_05, Role::Client).unwrap();
        assert_eq!((broken.broken, broken.violations[0].count), (2, 2));
    }

    #[test]
    fn rules_whose_situation_did_not_arise_are_listed_too() {
        let verdicts = Verdicts::default();
        let all: Vec<_> = verdicts.all(Role::Server, RevisionSet::ALL).collect();
        assert!(all.iter().all(|verdict| verdict.outcome() == RuleOutcome::NotExercised));
        assert!(all.iter().any(|verdict| verdict.rule.id == "TOOL-06"));
        assert!(all.iter().all(|verdict| verdict.rule.id != "LIFE-01"));
    }
}
