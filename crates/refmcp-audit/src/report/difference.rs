//! What differs between two reports: of two versions of a client, say, or of the same one on two days.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::counted;
use super::model::{Conclusion, Report};
use super::rule::RuleReport;
use crate::verdict::{Role, RuleOutcome};

/// Rules whose outcome differs between an earlier report and a later one. Names, versions and transports of the parties do not
/// count: a rule is compared by what all judgements of a report say of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// What the later report comes to.
    pub conclusion: Conclusion,
    /// Broken now and not before, or in a way in which they were not broken before.
    pub newly_broken: Vec<Change>,
    /// Broken now as before.
    pub still_broken: Vec<Change>,
    /// Broken before, kept now.
    pub no_longer_broken: Vec<Change>,
    /// Kept now, not exercised before.
    pub newly_exercised: Vec<Change>,
    /// Kept or broken before, not exercised now.
    pub no_longer_exercised: Vec<Change>,
}

/// One rule in both reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The id of the rule.
    pub id: String,
    /// The party.
    pub party: Role,
    /// How strict the rule is, by name.
    pub level: String,
    /// Whether the specification demands it.
    pub is_demanded: bool,
    /// The rule in one sentence.
    pub text: String,
    /// The outcome before.
    pub before: RuleOutcome,
    /// The outcome now.
    pub outcome: RuleOutcome,
    /// The ways in which it is broken: those that are new, or all where none is.
    pub what: Vec<String>,
}

/// One rule over all judgements of a report.
struct Merged<'a> {
    rule: &'a RuleReport,
    outcome: RuleOutcome,
    what: Vec<Way<'a>>,
}

/// A way in which a rule is broken, and the revision where the report tells it: what is broken in one is no news there, but is in
/// another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Way<'a> {
    what: &'a str,
    revision: Option<&'a str>,
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.revision {
            Some(revision) => write!(f, "{} ({revision})", self.what),
            None => f.write_str(self.what),
        }
    }
}

impl Difference {
    /// Compares a report with an earlier one.
    pub fn between(before: &Report, now: &Report) -> Self {
        let (before, later) = (merged(before), merged(now));
        let mut difference = Self { conclusion: now.conclusion, ..Self::default() };
        let mut keys: Vec<_> = later.keys().chain(before.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            difference.compare(before.get(key), later.get(key));
        }
        difference
    }

    /// Whether a rule that the specification demands is newly broken.
    pub fn has_new_broken_musts(&self) -> bool {
        self.newly_broken.iter().any(|change| change.is_demanded)
    }

    /// What the comparison comes to, in one sentence.
    pub fn summary(&self) -> String {
        if self.conclusion == Conclusion::NothingJudged {
            return "Nothing was judged: there is nothing to compare.".to_owned();
        }
        let demanded = self.newly_broken.iter().filter(|change| change.is_demanded).count() as u64;
        format!(
            "{} newly broken, {demanded} of them demanded by the specification; {} still broken, {} no longer.",
            counted(self.newly_broken.len() as u64, "rule"),
            self.still_broken.len(),
            self.no_longer_broken.len(),
        )
    }

    fn compare(&mut self, before: Option<&Merged<'_>>, now: Option<&Merged<'_>>) {
        let outcome = |side: Option<&Merged<'_>>| side.map_or(RuleOutcome::NotExercised, |it| it.outcome);
        let known = before.map_or(&[][..], |it| &it.what);
        let what = now.map_or(&[][..], |it| &it.what);
        let new: Vec<Way<'_>> = what.iter().filter(|what| !known.contains(what)).copied().collect();
        let list = match (outcome(before), outcome(now)) {
            (RuleOutcome::Broken, RuleOutcome::Broken) if new.is_empty() => &mut self.still_broken,
            (_, RuleOutcome::Broken) => &mut self.newly_broken,
            (RuleOutcome::Broken, RuleOutcome::Kept) => &mut self.no_longer_broken,
            (before, RuleOutcome::Kept) if !before.is_judged() => &mut self.newly_exercised,
            (before, now) if before.is_judged() && !now.is_judged() => &mut self.no_longer_exercised,
            _ => return,
        };
        let Some(Merged { rule, .. }) = now.or(before) else { return };
        let shown = if new.is_empty() { what.to_vec() } else { new };
        list.push(Change {
            id: rule.id.clone(),
            party: rule.party,
            level: rule.level.to_string(),
            is_demanded: rule.is_demanded(),
            text: rule.text.clone(),
            before: outcome(before),
            outcome: outcome(now),
            what: shown.iter().map(Way::to_string).collect(),
        });
    }
}

/// The rules of a report by party and id: broken if one judgement says so, kept if one does and none says broken.
fn merged(report: &Report) -> BTreeMap<(Role, &str), Merged<'_>> {
    let mut all: BTreeMap<(Role, &str), Merged<'_>> = BTreeMap::new();
    for rule in report.rules() {
        let what = rule.violations.iter().flat_map(|violation| {
            let what = &*violation.what;
            let revisions = violation.revisions.iter().map(move |it| Way { what, revision: Some(it) });
            // An audit does not tell them apart.
            revisions.chain(violation.revisions.is_empty().then_some(Way { what, revision: None }))
        });
        let known = all.entry((rule.party, &rule.id)).or_insert_with(|| Merged {
            rule,
            outcome: rule.outcome,
            what: Vec::new(),
        });
        known.outcome = known.outcome.min(rule.outcome);
        known.what.extend(what);
    }
    all
}
