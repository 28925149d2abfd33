//! What a check has found in the shape of the reports of audits, which are written in every format.

use std::collections::BTreeMap;

use refmcp_audit::auditor::{Feature, audited_rules};
use refmcp_audit::coverage::not_audited;
use refmcp_audit::report::{
    CheckedServer, Conclusion, ExchangeReport, FeatureReport, JudgementReport, Report, RuleOutcome,
    RuleReport, Score, ViolationReport,
};
use refmcp_audit::verdict::Role;
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Level, Rule};

use crate::baseline::Compared;
use crate::probe::checked_rules;
use crate::report::{CheckReport, CheckResult, Outcome};
use crate::requirements::{is_of_transport, is_required};

impl CheckReport {
    /// The same as a report of an audit, with what a baseline says of it.
    pub fn report(&self, compared: Option<&Compared<'_>>) -> Report {
        let wanted = |rule: &&Rule| {
            let has_results = self.results.iter().any(|result| result.rule.id == rule.id);
            let is_listed = self.rules.iter().any(|known| known.id == rule.id);
            let binds = Role::Server.is_bound_by(rule) && rule.revisions.intersects(self.revisions);
            has_results || (is_listed && binds)
        };
        let rules: Vec<RuleReport> =
            rule::all().filter(wanted).map(|rule| self.rule_report(rule, compared)).collect();
        let feature = |feature: &Feature| FeatureReport {
            feature: feature.to_string(),
            client: None,
            server: self.features.support(*feature, Role::Server),
        };
        let checked = CheckedServer {
            target: self.target.clone(),
            unsupported: self
                .unsupported
                .iter()
                .map(|(revision, why)| (revision.to_string(), why.clone()))
                .collect(),
            stale: compared.map(|compared| compared.stale.clone()).unwrap_or_default(),
            scores: self
                .revisions
                .iter()
                .map(|revision| (revision.to_string(), self.score(&rules, revision)))
                .collect(),
        };
        let judgement = JudgementReport {
            client: format!("refmcp-check {}", env!("CARGO_PKG_VERSION")),
            server: self.server.clone(),
            transport: self.transport.to_owned(),
            revisions: self.revisions.iter().map(|revision| revision.to_string()).collect(),
            recorded_by: Role::Client,
            features: Feature::ALL.iter().map(feature).collect(),
            client_steps: Vec::new(),
            rules,
        };
        let mut report = Report::of_check(checked, judgement);
        if report.conclusion == Conclusion::Kept && !self.is_verified() {
            report.conclusion = Conclusion::NothingJudged;
        }
        report
    }

    /// What was found out about the requirements of a revision, among these rules.
    fn score(&self, rules: &[RuleReport], revision: Revision) -> Score {
        let mut score = Score::default();
        let name = revision.to_string();
        let is_skipped = |rule: &Rule| {
            let mut results = self.results.iter();
            results.any(|it| {
                it.rule.id == rule.id && it.revision == revision && matches!(it.outcome, Outcome::Skipped(_))
            })
        };
        let required = |rule: &&Rule| is_required(rule, revision) && is_of_transport(rule, self.transport);
        for report in rules {
            let Some(rule) = rule::find(&report.id).filter(required) else { continue };
            score.requirements += 1;
            *match report.by_revision.get(&name) {
                Some(RuleOutcome::Broken) => &mut score.broken,
                Some(RuleOutcome::Kept) => &mut score.kept,
                Some(RuleOutcome::NotVerified) => &mut score.not_verified,
                Some(RuleOutcome::NotExercised) if is_skipped(rule) => &mut score.skipped,
                Some(RuleOutcome::NotExercised | RuleOutcome::NotJudged) | None => &mut score.not_exercised,
            } += 1;
        }
        score
    }

    fn rule_report(&self, rule: &'static Rule, compared: Option<&Compared<'_>>) -> RuleReport {
        let results: Vec<&CheckResult> =
            self.results.iter().filter(|result| result.rule.id == rule.id).collect();
        let mut by_revision = BTreeMap::new();
        for result in &results {
            let known = by_revision.entry(result.revision.to_string()).or_insert(RuleOutcome::NotJudged);
            *known = both(*known, outcome(result));
        }
        let is_judged = || audited_rules().chain(checked_rules()).any(|judged| judged.id == rule.id);
        let unseen = || if is_judged() { RuleOutcome::NotExercised } else { RuleOutcome::NotJudged };
        let outcome = by_revision.values().min().copied().unwrap_or_else(unseen);
        let reason = match outcome {
            RuleOutcome::NotJudged => not_audited(rule).map(str::to_owned),
            _ => results.iter().find_map(|result| reason(result, outcome)),
        };
        let broken = || results.iter().filter(|result| result.violation().is_some());
        let excuses: Option<Vec<&str>> = broken().map(|result| excuse(result, compared)).collect();
        RuleReport {
            id: rule.id.to_owned(),
            party: Role::Server,
            level: rule.level,
            outcome,
            text: rule.text.to_owned(),
            link: rule.link(),
            kept: results.iter().filter(|result| result.outcome == Outcome::Kept).count() as u64,
            broken: broken().count() as u64,
            violations: violations(&results),
            reason,
            excuse: excuses.and_then(|excuses| excuses.first().map(|&excuse| excuse.to_owned())),
            by_revision,
        }
    }
}

fn outcome(result: &CheckResult) -> RuleOutcome {
    match result.outcome {
        Outcome::Broken(_) => RuleOutcome::Broken,
        Outcome::Kept => RuleOutcome::Kept,
        Outcome::NotVerified(_) => RuleOutcome::NotVerified,
        Outcome::Skipped(_) => RuleOutcome::NotExercised,
    }
}

/// What two results of a rule in one revision say: it is kept only where all of it could be found out.
fn both(one: RuleOutcome, other: RuleOutcome) -> RuleOutcome {
    match (one.min(other), one.max(other)) {
        (RuleOutcome::Kept, RuleOutcome::NotVerified) => RuleOutcome::NotVerified,
        (first, _) => first,
    }
}

/// Why a result is none, where the rule has the outcome of it.
fn reason(result: &CheckResult, of_rule: RuleOutcome) -> Option<String> {
    match &result.outcome {
        Outcome::Skipped(why) | Outcome::NotVerified(why) if outcome(result) == of_rule => Some(why.clone()),
        _ => None,
    }
}

/// Why a broken rule fails nothing.
fn excuse(result: &CheckResult, compared: Option<&Compared<'_>>) -> Option<&'static str> {
    let known = compared.is_some_and(|it| it.known.iter().any(|known| std::ptr::eq(*known, result)));
    let demanded = matches!(result.rule.level, Level::Must | Level::May);
    match (known, demanded) {
        (true, _) => Some("the baseline has it"),
        (false, true) if !is_required(result.rule, result.revision) => Some("it is no requirement yet"),
        _ => None,
    }
}

/// The different ways in which a rule was broken, each with its first exchange and all its revisions.
fn violations(results: &[&CheckResult]) -> Vec<ViolationReport> {
    let mut all: Vec<ViolationReport> = Vec::new();
    for result in results {
        let Some(violation) = result.violation() else { continue };
        let same = |known: &&mut ViolationReport| {
            let probe = known.exchange.as_ref().map(|exchange| &*exchange.probe);
            (&known.what, &known.expected, probe)
                == (&violation.what, &violation.expected, Some(result.probe))
        };
        let revision = result.revision.to_string();
        if let Some(known) = all.iter_mut().find(same) {
            known.count += 1;
            known.revisions.push(revision);
            continue;
        }
        let exchange = ExchangeReport {
            probe: result.probe.to_owned(),
            request: violation.exchange.request.clone(),
            answer: violation.exchange.answer.clone(),
            repeat: violation.exchange.repeat.clone(),
        };
        all.push(ViolationReport {
            what: violation.what.clone(),
            expected: violation.expected.clone(),
            count: 1,
            revisions: vec![revision],
            evidence: None,
            exchange: Some(exchange),
        });
    }
    all
}
