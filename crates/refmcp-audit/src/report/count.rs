//! How many rules have each outcome.

use refmcp_proto::rule::Level;
use serde::{Deserialize, Serialize};

use super::rule::RuleReport;
use crate::verdict::{Role, RuleOutcome};

/// How many rules of a party and a level have each outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Count {
    /// The party.
    pub party: Role,
    /// The level.
    pub level: Level,
    /// Broken at least once.
    pub broken: u64,
    /// Kept.
    pub kept: u64,
    /// They should have been found out and could not be.
    #[serde(default)]
    pub not_verified: u64,
    /// Their situation did not arise.
    pub not_exercised: u64,
    /// What passes does not show them.
    pub not_judged: u64,
}

/// Counts rules by party and level, in that order.
pub(super) fn counts<'a>(rules: impl Iterator<Item = &'a RuleReport>) -> Vec<Count> {
    let mut counts: Vec<Count> = Vec::new();
    for rule in rules {
        let (party, level) = (rule.party, rule.level);
        let at = counts.iter().position(|count| (count.party, count.level) == (party, level));
        let at = at.unwrap_or_else(|| {
            let (broken, kept, not_verified, not_exercised, not_judged) = (0, 0, 0, 0, 0);
            counts.push(Count { party, level, broken, kept, not_verified, not_exercised, not_judged });
            counts.len() - 1
        });
        let Some(count) = counts.get_mut(at) else { continue };
        *match rule.outcome {
            RuleOutcome::Broken => &mut count.broken,
            RuleOutcome::Kept => &mut count.kept,
            RuleOutcome::NotVerified => &mut count.not_verified,
            RuleOutcome::NotExercised => &mut count.not_exercised,
            RuleOutcome::NotJudged => &mut count.not_judged,
        } += 1;
    }
    counts.sort_by_key(|count| (count.party, count.level));
    counts
}

impl Count {
    /// How many rules have this outcome.
    pub fn of(&self, outcome: RuleOutcome) -> u64 {
        match outcome {
            RuleOutcome::Broken => self.broken,
            RuleOutcome::Kept => self.kept,
            RuleOutcome::NotVerified => self.not_verified,
            RuleOutcome::NotExercised => self.not_exercised,
            RuleOutcome::NotJudged => self.not_judged,
        }
    }
}

/// The outcomes that a table of counts has columns for: only checks have rules that are not verified.
pub(super) fn columns(counts: &[Count]) -> Vec<RuleOutcome> {
    let has_unverified = counts.iter().any(|count| count.not_verified > 0);
    let is_shown = |outcome: &RuleOutcome| has_unverified || *outcome != RuleOutcome::NotVerified;
    RuleOutcome::ALL.into_iter().filter(is_shown).collect()
}
