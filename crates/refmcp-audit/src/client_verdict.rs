//! What a server tells a client of the verdict on it.

use std::collections::BTreeSet;

use refmcp_proto::rule::Rule;
use serde::Serialize;

use crate::auditor::{Judgement, audited_rules};
use crate::verdict::{Role, RuleOutcome};

/// The verdict on a client, to be shown to it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientVerdict {
    /// How many messages were judged; absent where all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    /// Whether all that passed so far was judged.
    complete: bool,
    /// How the client broke rules, each different way once.
    broken: Vec<BrokenRule>,
    /// How many rules it kept.
    kept: usize,
    /// The rules that it neither kept nor broke, by their ids.
    not_exercised: BTreeSet<&'static str>,
    #[serde(skip)]
    kept_rules: BTreeSet<&'static str>,
}

/// A way in which a rule was broken.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokenRule {
    rule: &'static str,
    level: String,
    demands: &'static str,
    link: String,
    what: String,
    expected: String,
    count: u64,
    /// The message: only of the connection of the client that asks. At an address there may be others.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl ClientVerdict {
    /// Of verdicts on a conversation, what a client may see that asks on this connection.
    pub fn new(
        judgement: &Judgement,
        connection: Option<u64>,
        messages: Option<u64>,
        complete: bool,
    ) -> Self {
        let verdicts = || judgement.verdicts.iter().filter(|verdict| verdict.role == Role::Client);
        let mut broken = Vec::new();
        for verdict in verdicts() {
            let rule: &Rule = verdict.rule;
            broken.extend(verdict.violations.iter().map(|violation| {
                let evidence = &violation.evidence;
                let is_own = connection == Some(evidence.connection) && !evidence.text.is_empty();
                BrokenRule {
                    rule: rule.id,
                    level: rule.level.to_string(),
                    demands: rule.text,
                    link: rule.link(),
                    what: violation.what.clone(),
                    expected: violation.expected.clone(),
                    count: violation.count,
                    message: is_own.then(|| evidence.text.clone()),
                }
            }));
        }
        let kept = verdicts().filter(|it| it.outcome() == RuleOutcome::Kept);
        let kept_rules: BTreeSet<_> = kept.map(|it| it.rule.id).collect();
        let of_client = |rule: &&'static Rule| {
            Role::Client.is_bound_by(rule) && rule.revisions.intersects(judgement.revisions)
        };
        let exercised: BTreeSet<_> = verdicts().map(|it| it.rule.id).collect();
        let not_exercised =
            audited_rules().filter(of_client).map(|rule| rule.id).filter(|id| !exercised.contains(id));
        Self {
            messages,
            complete,
            broken,
            kept: kept_rules.len(),
            not_exercised: not_exercised.collect(),
            kept_rules,
        }
    }

    /// This and a later one on the same client.
    #[must_use]
    pub fn merged(mut self, later: Self) -> Self {
        self.messages = self.messages.zip(later.messages).map(|(one, other)| one + other);
        self.complete &= later.complete;
        for broken in later.broken {
            let same = |it: &&mut BrokenRule| it.rule == broken.rule && it.what == broken.what;
            match self.broken.iter_mut().find(same) {
                Some(known) => {
                    known.count += broken.count;
                    known.message = broken.message.or(known.message.take());
                }
                None => self.broken.push(broken),
            }
        }
        self.kept_rules.extend(later.kept_rules);
        self.kept_rules.retain(|id| self.broken.iter().all(|broken| broken.rule != *id));
        self.kept = self.kept_rules.len();
        self.not_exercised.retain(|id| later.not_exercised.contains(id));
        self
    }
}
